package wire

import (
	"strings"

	"github.com/parley-hub/parley/fault"
)

// Prefixes of NATS subjects, one for each version of the protocol.
const (
	SubjectPrefix   = "agh.network.v0"
	SubjectPrefixV1 = "agh.network.v1"
)

func prefixOf(version int) string {
	if version == 1 {
		return SubjectPrefixV1
	}
	return SubjectPrefix
}

// BroadcastSubject is where a channel's broadcasts go.
func BroadcastSubject(version int, workspace, channel string) (string, error) {
	if !ValidWorkspace(workspace) || !ValidChannel(channel) {
		return "", fault.New(fault.Invalid, "the workspace %q and the channel %q do not make a NATS subject", workspace, channel)
	}
	return prefixOf(version) + "." + workspace + "." + channel + ".broadcast", nil
}

// PeerSubject is where what is directed to a peer goes.
func PeerSubject(version int, workspace, channel, peer string) (string, error) {
	if !ValidWorkspace(workspace) || !ValidChannel(channel) {
		return "", fault.New(fault.Invalid, "the workspace %q and the channel %q do not make a NATS subject", workspace, channel)
	}
	token, err := RouteToken(peer)
	if err != nil {
		return "", err
	}
	return prefixOf(version) + "." + workspace + "." + channel + ".peer." + token, nil
}

// Subject is where the envelope is published.
func (e *Envelope) Subject() (string, error) {
	if e.To == "" || e.Kind == Greet {
		return BroadcastSubject(e.Version(), e.Workspace, e.Channel)
	}
	return PeerSubject(e.Version(), e.Workspace, e.Channel, e.To)
}

// Subject is what a subject says, as far as it can be read back.
type Subject struct {
	Version   int
	Workspace string
	Channel   string
	Token     string // of a peer; empty: broadcast
}

// ParseSubject reads a subject of the network.
func ParseSubject(subject string) (Subject, bool) {
	var s Subject
	rest, ok := strings.CutPrefix(subject, SubjectPrefix+".")
	if !ok {
		if rest, ok = strings.CutPrefix(subject, SubjectPrefixV1+"."); !ok {
			return Subject{}, false
		}
		s.Version = 1
	}
	parts := strings.Split(rest, ".")
	switch {
	case len(parts) == 3 && parts[2] == "broadcast":
	case len(parts) == 4 && parts[2] == "peer" && len(parts[3]) == 32 && hexClass.holds(parts[3]):
		s.Token = parts[3]
	default:
		return Subject{}, false
	}
	s.Workspace, s.Channel = parts[0], parts[1]
	return s, ValidWorkspace(s.Workspace) && ValidChannel(s.Channel)
}

// Carries reports whether an envelope belongs on a subject: version,
// workspace, channel and addressee agree. A greeting's `to` is ignored.
func (s Subject) Carries(e *Envelope) bool {
	if s.Version != e.Version() || s.Workspace != e.Workspace || s.Channel != e.Channel {
		return false
	}
	if e.To == "" {
		return s.Token == ""
	}
	token, err := RouteToken(e.To)
	return err == nil && token == s.Token || e.Kind == Greet && s.Token == ""
}
