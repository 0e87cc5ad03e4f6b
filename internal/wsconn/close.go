package wsconn

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// Code is the code of a close frame.
type Code uint16

// Close codes. A client that gets GoingAway, SlowReader or TryAgain may
// reconnect; one that gets another should not without a change.
const (
	Normal     Code = 1000
	GoingAway  Code = 1001
	Protocol   Code = 1002
	NotUTF8    Code = 1007 // also for data that is not what the handler expects
	Policy     Code = 1008
	TooLarge   Code = 1009
	Internal   Code = 1011
	SlowReader Code = 1013
	TryAgain   Code = 1013
)

// CloseError ends a connection with a close code that is sent to the peer.
type CloseError struct {
	Code   Code
	Reason string
}

func (e *CloseError) Error() string { return fmt.Sprintf("closed with %d: %s", e.Code, e.Reason) }

// Farewell is a Handler that answers the peer's close frame in its own words;
// without it the peer's code is sent back.
type Farewell interface {
	Farewell() (Code, string)
}

// peerClosed is the peer's own close frame.
type peerClosed struct{ code Code }

func (p *peerClosed) Error() string { return fmt.Sprintf("the peer closed with %d", p.code) }

// ErrClosed is returned for a frame that comes after a close frame.
var ErrClosed = errors.New("the connection is closed")

// closeTimeout is how long a close frame may take.
const closeTimeout = 2 * time.Second

// closeFrame makes a close frame. A reason that is too long is cut between two
// characters: a reason must be UTF-8.
func closeFrame(code Code, reason string) Frame {
	const most = ws.MaxControlFramePayloadSize - 2
	if len(reason) > most {
		end := most
		for end > 0 && !utf8.RuneStart(reason[end]) {
			end--
		}
		reason = reason[:end]
	}
	return Frame{control: ws.OpClose, Body: ws.NewCloseFrameBody(ws.StatusCode(code), reason)}
}

// readClose turns a close frame into the error that ends reading.
func readClose(payload []byte) error {
	if len(payload) == 0 {
		return &peerClosed{Normal}
	}
	if len(payload) == 1 {
		return &CloseError{Protocol, "a close frame has no code, or one of two bytes"}
	}
	code, reason := ws.ParseCloseFrameData(payload)
	if !utf8.ValidString(reason) {
		return &CloseError{NotUTF8, "the reason of a close frame is not UTF-8"}
	}
	// Registered after RFC 6455, and unknown to the library.
	registered := code >= 1012 && code <= 1014
	if err := ws.CheckCloseFrameData(code, reason); (err != nil && !registered) || code > 4999 {
		return &CloseError{Protocol, fmt.Sprintf("close code %d is not allowed in a frame", code)}
	}
	return &peerClosed{Code(code)}
}
