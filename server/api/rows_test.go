package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/server/api"
)

// human registers a person.
func (s *site) human(name string) string {
	s.t.Helper()
	p, err := s.hub.Register(s.t.Context(), hub.Registration{
		Passport: &identity.Passport{Name: name, Kind: identity.Human, Auth: identity.Auth{Scheme: identity.SchemeNone}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.hub.Bind(p.ID(), acker{s.hub}); err != nil {
		s.t.Fatal(err)
	}
	return p.ID()
}

// ids lists the channels of a page.
func (s *site) ids(as, query string) (ids []string, page map[string]any) {
	s.t.Helper()
	status, page := s.ask(as, "GET", "/v1/channels?"+query, "")
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %v", query, status, page)
	}
	for _, item := range page["channels"].([]any) {
		ids = append(ids, item.(map[string]any)["channel_id"].(string))
	}
	return ids, page
}

func TestRowsSayWhoWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice, bob := s.agent("alice"), s.agent("bob")
	ch := s.open("consulting", "alice", "bob")
	s.tell(ch, "alice", "Is the\nbuild   green?\u202e "+strings.Repeat("x", 200))
	_, page := s.ids(operator, "form=row")
	row := page["channels"].([]any)[0].(map[string]any)
	turn, last := row["turn"].(map[string]any), row["last"].(map[string]any)
	if turn["agent_id"] != bob || turn["name"] != "bob" || turn["online"] != true || turn["overdue"] != false || turn["handed_at"] == nil {
		t.Errorf("turn: %v", turn)
	}
	for _, at := range []any{turn["since"], turn["handed_at"], row["created_at"], last["at"]} {
		if parsed, err := time.Parse(time.RFC3339Nano, at.(string)); err != nil || !strings.HasSuffix(at.(string), "Z") || parsed.IsZero() {
			t.Errorf("%v is not a time in UTC", at)
		}
	}
	title, text := row["title"].(string), last["text"].(string)
	if !strings.HasPrefix(title, "Is the build green? xxx") || len([]rune(title)) != 80 || len([]rune(text)) != 160 {
		t.Errorf("title %q, text %q", title, text)
	}
	if last["sender_id"] != alice || row["length"] != last["sequence"] || row["requests_open"] != 0.0 || row["quarantined"] != false {
		t.Errorf("row: %v", row)
	}
	if _, knobs := row["knobs"]; knobs {
		t.Error("a row has knobs")
	}
	s.ask(operator, "POST", "/v1/channels/"+ch+"/requests", `{"asked_by":"alice","kind":"approval","title":"Go on?"}`)
	_, shown := s.ask(operator, "GET", "/v1/channels/"+ch, "")
	if shown["requests_open"] != 1.0 || shown["turn"].(map[string]any)["agent_id"] != bob || shown["last"] == nil || shown["expectations"] == nil {
		t.Errorf("shown: %v", shown)
	}
	_, turns := s.ask(operator, "GET", "/v1/agents/bob/turns", "")
	if list := turns["turns"].([]any); len(list) != 1 || list[0].(map[string]any)["channel_id"] != ch {
		t.Errorf("bob's turns: %v", turns)
	}
	if status, _ := s.ask("agent:alice", "GET", "/v1/agents/bob/turns", ""); status != http.StatusForbidden {
		t.Errorf("another's turns: %d", status)
	}
	_, agents := s.ask(operator, "GET", "/v1/agents?query=BO&online", "")
	found := agents["agents"].([]any)
	if len(found) != 1 || found[0].(map[string]any)["turns_waiting"] != 1.0 || found[0].(map[string]any)["oldest_turn_at"] == nil || found[0].(map[string]any)["open_channels"] != 1.0 {
		t.Errorf("agents: %v", agents)
	}
}

func TestChannelsAreFilteredAndSorted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.human("hana")
	first := s.open("consulting", "alice", "hana")
	second := s.open("consulting", "alice", "bob")
	third := s.open("conversation", "bob", "hana")
	s.tell(first, "alice", "please look")
	s.tell(second, "alice", "please look too")
	s.ask(operator, "POST", "/v1/channels/"+third+"/close", `{"reason":"done"}`)
	for query, want := range map[string][]string{
		"":                              {first, second, third},
		"newest":                        {third, second, first},
		"waiting_for=people":            {first},
		"waiting_for=bob":               {second},
		"waiting_for=alice":             nil,
		"state=active":                  {first, second},
		"state=active&state=closed":     {first, second, third},
		"state=closed":                  {third},
		"q=hana":                        {first, third},
		"q=CONVER":                      {third},
		"q=" + second[:12]:              {second},
		"q=" + second[len(second)-8:]:   {second},
		"q=red&newest":                  {third, second, first}, // a label's value
		"q=nonsense":                    nil,
		"overdue":                       nil,
		"sort=activity":                 {first, second},
		"sort=activity&newest":          {second, first},
		"sort=activity&waiting_for=bob": {second},
	} {
		if got, _ := s.ids(operator, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if got, _ := s.ids("agent:hana", "form=row&newest"); !slices.Equal(got, []string{third, first}) {
		t.Errorf("hana sees %v", got)
	}
	for _, sort := range []string{"created", "activity", "due"} {
		if got, _ := s.ids(operator, "form=row&sort="+sort+"&limit=1"); sort != "due" && len(got) != 1 {
			t.Errorf("%s: %v", sort, got)
		}
	}
}

func TestListsPageBothWays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	var all []string
	for range 7 {
		all = append(all, s.open("conversation", "alice", "bob"))
	}
	for _, sort := range []string{"created", "activity"} {
		query := "form=row&limit=3&sort=" + sort
		one, page := s.ids(operator, query)
		two, page := s.ids(operator, query+"&after="+page["next"].(string))
		three, last := s.ids(operator, query+"&after="+page["next"].(string))
		if got := slices.Concat(one, two, three); !slices.Equal(got, all) || last["next"] != "" {
			t.Errorf("%s onward: %v, want %v", sort, got, all)
		}
		back, page := s.ids(operator, query+"&before="+last["prev"].(string))
		if !slices.Equal(back, two) || page["next"] == "" {
			t.Errorf("%s back: %v, want %v", sort, back, two)
		}
		first, page := s.ids(operator, query+"&before="+page["prev"].(string))
		if !slices.Equal(first, one) || page["prev"] != "" {
			t.Errorf("%s back to the beginning: %v (prev %v), want %v", sort, first, page["prev"], one)
		}
	}
	_, newest := s.ask(operator, "GET", "/v1/audit?newest&limit=2&kind=channel_created", "")
	records := newest["records"].([]any)
	if len(records) != 2 || records[0].(map[string]any)["channel_id"] != all[6] {
		t.Errorf("the newest of the audit: %v", records)
	}
	_, older := s.ask(operator, "GET", "/v1/audit?newest&limit=2&kind=channel_created&after="+newest["next"].(string), "")
	_, back := s.ask(operator, "GET", "/v1/audit?newest&limit=2&kind=channel_created&before="+older["prev"].(string), "")
	if fmt.Sprint(back["records"]) != fmt.Sprint(records) {
		t.Errorf("back in the audit: %v, want %v", back["records"], records)
	}
}

func TestEventsPageBothWaysAndAreSearched(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	for i := range 10 {
		s.tell(ch, "alice", fmt.Sprintf("word %d", i))
	}
	at := "/v1/channels/" + ch + "/events?"
	page := func(query string) (texts []string, page map[string]any) {
		t.Helper()
		status, page := s.ask(operator, "GET", at+query, "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", query, status, page)
		}
		for _, item := range page["events"].([]any) {
			text, _ := item.(map[string]any)["event_data"].(map[string]any)["text"].(string)
			texts = append(texts, text)
		}
		return texts, page
	}
	_, whole := page("limit=1000")
	events := whole["events"].([]any)
	if whole["prev"] != "" || whole["first"] != events[0].(map[string]any)["position"] || whole["more"] != false {
		t.Errorf("the whole: %v %v %v", whole["prev"], whole["first"], whole["more"])
	}
	last, back := page("limit=3&before=" + events[len(events)-1].(map[string]any)["position"].(string))
	if !slices.Equal(last, []string{"word 6", "word 7", "word 8"}) || back["more"] != true {
		t.Errorf("back: %v", last)
	}
	earlier, _ := page("limit=3&before=" + back["prev"].(string))
	if !slices.Equal(earlier, []string{"word 3", "word 4", "word 5"}) {
		t.Errorf("further back: %v", earlier)
	}
	onward, _ := page("limit=2&after=" + back["next"].(string))
	if !slices.Equal(onward, []string{"word 9"}) {
		t.Errorf("onward: %v", onward)
	}
	middle := events[len(events)-5].(map[string]any) // word 5
	for _, around := range []string{fmt.Sprint(int(middle["sequence"].(float64))), middle["envelope_id"].(string)} {
		if got, _ := page("limit=4&around=" + around); !slices.Equal(got, []string{"word 3", "word 4", "word 5", "word 6"}) {
			t.Errorf("around %s: %v", around, got)
		}
	}
	if got, found := page("match=WORD+7"); !slices.Equal(got, []string{"word 7"}) || found["scanned"] != float64(len(events)) {
		t.Errorf("a search: %v, read %v of %d", got, found["scanned"], len(events))
	}
	if got, found := page("match=nonsense"); got != nil || found["more"] != false || found["next"] != whole["next"] {
		t.Errorf("a search without a hit: %v %v", got, found)
	}
	if got, _ := page("type=ag2.channel.opened&type=ag2.msg.text&sender=bob"); got != nil {
		t.Errorf("of bob: %v", got)
	}
}

func TestASearchReadsAtMostItsLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *api.Config) { cfg.Limits.Search = 64 << 10 })
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	for range 20 {
		s.tell(ch, "alice", strings.Repeat("long ", 2000))
	}
	s.tell(ch, "alice", "needle")
	calls, hits := 0, 0
	for next := ""; ; calls++ {
		_, page := s.ask(operator, "GET", "/v1/channels/"+ch+"/events?match=needle&after="+next, "")
		hits += len(page["events"].([]any))
		if page["scanned"].(float64) > 10 && calls < 2 {
			t.Errorf("call %d read %v events", calls, page["scanned"])
		}
		if next = page["next"].(string); page["more"] == false {
			break
		}
	}
	if calls < 2 || hits != 1 {
		t.Errorf("%d hits in %d calls", hits, calls)
	}
}

func TestSummaryCounts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.human("hana")
	ch := s.open("consulting", "alice", "hana")
	closed := s.open("conversation", "alice", "hana")
	s.tell(ch, "alice", "please look")
	s.ask(operator, "POST", "/v1/channels/"+closed+"/close", `{}`)
	s.ask(operator, "POST", "/v1/channels/"+ch+"/requests", fmt.Sprintf(`{"asked_by":"alice","kind":"approval","title":"Go on?","due_at":%q}`, time.Now().Add(time.Minute).UTC().Format(time.RFC3339)))
	if err := s.hub.ReportTurnFailure(t.Context(), ch, s.id("hana"), ch, "TimeoutError", "no answer"); err != nil {
		t.Fatal(err)
	}
	_, sum := s.ask(operator, "GET", "/v1/summary", "")
	channels, agents, requests := sum["channels"].(map[string]any), sum["agents"].(map[string]any), sum["requests"].(map[string]any)
	if channels["active"] != 1.0 || channels["pending"] != 0.0 || channels["waiting_for_people"] != 1.0 || channels["overdue"] != 0.0 || fmt.Sprint(channels["by_type"]) != "map[consulting:1]" {
		t.Errorf("channels: %v", channels)
	}
	if agents["registered"] != 2.0 || agents["online"] != 2.0 || agents["people"] != 1.0 || requests["open"] != 1.0 || requests["due_within_5m"] != 1.0 || sum["turns_failed"] != 1.0 {
		t.Errorf("agents %v, requests %v, failed %v", agents, requests, sum["turns_failed"])
	}
	_, own := s.ask("agent:hana", "GET", "/v1/summary", "")
	if c := own["channels"].(map[string]any); c["active"] != 1.0 || c["waiting_for_people"] != 1.0 {
		t.Errorf("hana's: %v", own)
	}
}

// tell has somebody say something, which must be accepted.
func (s *site) tell(ch, who, text string) {
	s.t.Helper()
	if status, body := s.say(operator, ch, who, text); status != http.StatusCreated {
		s.t.Fatalf("%s says: %d %v", who, status, body)
	}
}
