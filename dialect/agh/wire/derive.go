package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/parley-hub/parley/fault"
)

// directDomain separates the hash of direct rooms from every other one.
const directDomain = "agh-network/direct-room/v0"

// DirectID names the direct room of two peers in a channel of a workspace,
// whichever of them is named first.
func DirectID(workspace, channel, one, other string) (string, error) {
	workspace, channel = strings.TrimSpace(workspace), strings.TrimSpace(channel)
	a, b := strings.TrimSpace(one), strings.TrimSpace(other)
	switch {
	case !ValidWorkspace(workspace):
		return "", fault.New(fault.Invalid, "the workspace id %q is empty or not one token of a subject", workspace)
	case !ValidChannel(channel):
		return "", fault.New(fault.Invalid, "the channel %q does not match ^[a-z0-9][a-z0-9_-]{0,63}$", channel)
	case !ValidPeerOrHandle(a):
		return "", badPeer(a)
	case !ValidPeerOrHandle(b):
		return "", badPeer(b)
	case a == b:
		return "", fault.New(fault.Invalid, "a direct room has two peers, and %q is both of them", a)
	case b < a:
		a, b = b, a
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{directDomain, workspace, channel, a, b}, "\x00")))
	return "direct_" + hex.EncodeToString(sum[:16]), nil
}

// CheckDirect reports whether a direct room's id is the one of its peers.
func CheckDirect(id, workspace, channel, one, other string) error {
	want, err := DirectID(workspace, channel, one, other)
	if err != nil {
		return err
	}
	if id != want {
		return fault.New(fault.Conflict, "direct_room_collision: %q is not the direct room of %q and %q in %q", id, one, other, channel)
	}
	return nil
}

// Counterpart reports whether an envelope of a direct room belongs to the room
// that its sender shares with a peer.
func (e *Envelope) Counterpart(peer string) bool {
	return e.Surface == Direct && CheckDirect(e.Direct, e.Workspace, e.Channel, e.From, peer) == nil
}

// RouteToken is the last part of a peer's subject: the fingerprint of a
// handle, the hash of any other peer id.
func RouteToken(peer string) (string, error) {
	peer = strings.TrimSpace(peer)
	if ValidHandle(peer) {
		return peer[len(peer)-32:], nil
	}
	if !ValidPeer(peer) {
		return "", badPeer(peer)
	}
	sum := sha256.Sum256([]byte(peer))
	return hex.EncodeToString(sum[:16]), nil
}

func badPeer(peer string) error {
	return fault.New(fault.Invalid, "the peer id %q does not match ^[a-z0-9][a-z0-9._-]{0,127}$, nor is it a handle", peer)
}

// peerNameMax is how much of an agent's name its peer id keeps.
const peerNameMax = 100

// PeerID is the peer id of an agent's session: the name in lower case, what
// the grammar does not take replaced, and the session behind it.
func PeerID(name, session string) (string, error) {
	kept := strings.Map(func(r rune) rune {
		if r < 0x80 && peerClass[r] {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	kept = strings.TrimLeft(kept, "._-")
	kept = kept[:min(len(kept), peerNameMax)]
	if kept == "" {
		return "", fault.New(fault.Invalid, "the agent name %q has no letter or digit that a peer id could begin with; give a peer_id", name)
	}
	id := kept + "." + session
	if !ValidPeer(id) {
		return "", badPeer(id)
	}
	return id, nil
}

// NewSessionID makes the id of a hosted peer's session.
func NewSessionID() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // it never fails
	return "sess-" + hex.EncodeToString(raw[:])
}

// NewID makes an envelope's id: a random UUID.
func NewID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // it never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// RemoteIdentity is the id that a hub knows a peer of another runtime by.
func RemoteIdentity(workspace, peer string) string {
	sum := sha256.Sum256([]byte("agh-remote\x00" + workspace + "\x00" + peer))
	return hex.EncodeToString(sum[:16])
}
