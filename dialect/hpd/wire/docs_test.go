package wire_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

const pageHead = `# Events

One event is one flat JSON object: ` + "`version` `\"1.0\"`, `type`" + `, its own members, and base
fields. This page is generated from the one table in package ` + "`view/branch`" + ` and the types in
` + "`dialect/hpd/wire`" + ` (` + "`make docs`" + `).

Any event may carry ` + "`eventId`, `sessionId`, `branchId`, `eventFlowId`, `traceId`, `spanId`, `parentSpanId`,\n`metadata`, `channel`, `kind`, `direction`, `sequenceNumber`, `canInterrupt`, `timestamp`, `exchangeTimestampNs`" + `;
none of them is guaranteed. Members that are null are left out. A channel other than
Synchronous, a kind other than Content and a direction other than Downstream are written.
On the thread surface ` + "`BRANCH_`" + ` reads ` + "`THREAD_`" + `, and ` + "`branchId`" + ` reads ` + "`threadId`" + `.

A member with ` + "`?`" + ` is optional; one in **bold** must be there for the event to be taken. Whoever
is named under "from" brings the event; from anybody else it is refused. Custom types are
registered with a name, a codec and whether they are stored (default: not); types that nobody
registered pass through live.
`

// TestEventsPage compares the page with the table. PARLEY_UPDATE=1 rewrites it.
func TestEventsPage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(pageHead)
	family := ""
	for _, row := range branch.Rows() {
		if row.Family != family {
			family = row.Family
			fmt.Fprintf(&b, "\n## %s%s\n\n| Type | Members | Channel | Kind | Direction | Stored | From |\n|---|---|---|---|---|---|---|\n", strings.ToUpper(family[:1]), family[1:])
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", row.Type, memberList(row.Type), row.Channel, row.Kind, row.Direction, row.Persistence, row.Source)
	}
	path := filepath.Join("..", "..", "..", "docs", "hpd-events.md")
	if os.Getenv("PARLEY_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Errorf("docs/hpd-events.md is not what the table says; run make docs")
	}
}

// memberList returns a payload's members as text.
func memberList(name string) string {
	t := reflect.TypeOf(wire.Zero(name))
	var list []string
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		member, options, _ := strings.Cut(tag, ",")
		if member == "" {
			continue
		}
		shown := "`" + member + "`"
		switch {
		case field.Tag.Get("need") != "":
			shown = "**" + shown + "**"
		case strings.Contains(options, "omitzero"):
			shown += "?"
		}
		list = append(list, shown)
	}
	return strings.Join(list, ", ")
}
