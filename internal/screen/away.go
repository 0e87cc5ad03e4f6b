package screen

import (
	"errors"
	"fmt"
	"time"

	"github.com/parley-hub/parley/fault"
)

// Away reports whether an error says that the hub cannot be reached at the
// moment.
func Away(err error) bool {
	var refusal *fault.Error
	return err != nil && (!errors.As(err, &refusal) || fault.CodeOf(err) == fault.Unavailable)
}

// AwaySince says since when a hub has not answered.
func AwaySince(now, since time.Time) string {
	return fmt.Sprintf("the hub is away since %s (%s)", since.Local().Format("15:04:05"), Span(now.Sub(since)))
}
