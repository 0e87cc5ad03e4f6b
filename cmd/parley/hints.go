package main

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/parley-hub/parley/fault"
)

// advise adds to an error the command that would help, where there is one.
func advise(err error) error {
	if err == nil {
		return nil
	}
	if hint := hintFor(err); hint != "" {
		return fmt.Errorf("%w\n  → %s", err, hint)
	}
	return err
}

// turnOf finds whose turn a refusal says it is.
var turnOf = regexp.MustCompile(`it is the turn of '([^']+)'`)

func hintFor(err error) string {
	var unreachable *net.OpError
	if errors.As(err, &unreachable) && unreachable.Op == "dial" {
		return "start a hub with parley serve, or name another with --hub URL"
	}
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	says := refusal.Message
	switch refusal.Code {
	case fault.NotFound:
		switch {
		case strings.HasPrefix(says, "channel not found"):
			return "parley channels list shows which there are"
		case strings.HasPrefix(says, "task not found"):
			return "parley tasks list shows which there are"
		case strings.HasPrefix(says, "agent "):
			return "parley agents list shows who is there; parley agent echo NAME registers someone"
		}
	case fault.Invalid:
		if strings.HasPrefix(says, "say for whom you act") {
			return "add --as NAME; parley agents list shows who is there"
		}
	case fault.Protocol:
		if who := turnOf.FindStringSubmatch(says); who != nil {
			return "parley send CHANNEL TEXT --as " + who[1] + " speaks in turn; parley tail CHANNEL waits for it"
		}
		if strings.Contains(says, " is closed") || strings.Contains(says, " is expired") {
			return "parley channels open starts another"
		}
	case fault.AuthFailed:
		if strings.Contains(says, "api_key") {
			return "add --token TOKEN; an operator makes one with parley keys add --agent NAME"
		}
		return "set PARLEY_TOKEN to a token; without one, stop the hub and parley keys add --role operator makes one in its data folder"
	case fault.AccessDenied:
		if strings.HasPrefix(says, "a key of role") || strings.Contains(says, "takes a key of role") {
			return "set PARLEY_TOKEN to such a key's token; parley keys add --role operator makes one"
		}
	case fault.Gap:
		return "leave --after out to begin at the start"
	case fault.InboxFull:
		return "parley agents list shows who has fallen behind"
	}
	return ""
}
