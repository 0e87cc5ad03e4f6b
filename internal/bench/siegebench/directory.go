package siegebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/identity"
)

// The directory is larger than a frame. Its oldest entries are small, so that short
// lists cost little and leave limits.lists to the long ones.
const (
	smallAgents = 40
	largeAgents = 80
	largeOwner  = 15_000 // bytes of a large one; limits.record is 16 KiB

	directoryRequest = "directory"
)

// fill registers the agents of the directory on one connection.
func fill(ctx context.Context, c *client.Client) error {
	for _, part := range []struct {
		name  string
		count int
		owner string
	}{{"small", smallAgents, ""}, {"large", largeAgents, strings.Repeat("o", largeOwner)}} {
		const together = 8
		var group sync.WaitGroup
		errs := make([]error, together)
		for i := range together {
			group.Go(func() {
				for n := i; n < part.count && errs[i] == nil; n += together {
					_, errs[i] = c.Register(ctx, client.Registration{Passport: identity.Passport{
						Name: fmt.Sprint("directory-", part.name, n), Owner: part.owner,
					}})
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// judge examines one message of a server: whether a bound was met, and whether
// it was broken.
type judge func(message []byte) (met bool, err error)

// directoryIsCut judges the answer to a request for the whole directory: as much as
// fits a frame, and so not all.
func directoryIsCut(message []byte) (met bool, err error) {
	var answer struct {
		Request string            `json:"request_id"`
		OK      bool              `json:"ok"`
		Result  []json.RawMessage `json:"result"`
	}
	if json.Unmarshal(message, &answer) != nil || answer.Request != directoryRequest || !answer.OK {
		return false, nil // limits.lists, or another message
	}
	switch n := len(answer.Result); {
	case len(message) > settings.frame:
		return false, fmt.Errorf("a list has %d bytes, and a frame %d", len(message), settings.frame)
	case n == 0:
		return false, errors.New("the list is empty")
	case n >= smallAgents+largeAgents:
		return false, fmt.Errorf("a list has %d entries, and %d of them do not fit a frame", n, smallAgents+largeAgents)
	}
	return true, nil
}

// judged reads messages to the end of a connection.
func (by *attacker) judged(from io.ReadWriter, also io.Writer) {
	for {
		message, err := wsutil.ReadServerText(from)
		if err != nil {
			return
		}
		_, _ = also.Write(message) // it takes everything
		met, err := by.judge(message)
		switch {
		case err != nil:
			by.broke(err)
		case met:
			by.reached()
		default:
			by.told(message)
		}
	}
}
