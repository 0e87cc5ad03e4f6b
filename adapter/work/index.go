package work

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// The index entries of a conversation, under its adapter's own prefix. Parts
// are joined by slashes, which channels, peers and storable ids do not have.
//
//	activity/CHANNEL/NEWEST-FIRST/ID     the rest of the row that lists show
//	name/CHANNEL/ID                      NEWEST-FIRST of that row
//	message/CHANNEL/ID/TS/MESSAGE\1PEER  the message's sequence number
//	id/MESSAGE\1PEER                     where a message is, and what it made of its work: {"channel","id","ts","seq","was","now"}
//	told/CHANNEL/PEER/ENVELOPE           {"seq"} of what a peer is told; PEER is - for what all are told
//	work/WORK                            the row of a piece of work
//	speaker/CHANNEL/PEER                 nothing: who has ever spoken in public
//	peer/CHANNEL/PEER/NEWEST-FIRST/ID    nothing: the direct rooms of a peer
//	origin/DIGEST\1PEER                  nothing: who brought what was said first elsewhere; the digest is of conversation and origin
const (
	prefixActivity = "activity/"
	prefixName     = "name/"
	prefixMessage  = "message/"
	prefixID       = "id/"
	prefixTold     = "told/"
	prefixWork     = "work/"
	prefixSpeaker  = "speaker/"
	prefixPeer     = "peer/"
	prefixOrigin   = "origin/"
)

// WorkClaim is the name that a piece of work takes in its workspace, so that
// no other conversation can take it up.
func WorkClaim(id string) string { return prefixWork + id }

// newestFirst makes later times sort before earlier ones.
func newestFirst(ts int64) string { return hex16(math.MaxInt64 - ts) }

// hex16 is a number in sixteen hexadecimal digits.
func hex16(n int64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	var text [16]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}

func (p Place) activityKey(ts int64) string {
	return prefixActivity + p.Channel + "/" + newestFirst(ts) + "/" + p.ID
}

func (p Place) peerKey(peer string, ts int64) string {
	return prefixPeer + p.Channel + "/" + peer + "/" + newestFirst(ts) + "/" + p.ID
}

// keyLong is how much of an id is in a key; the rest is replaced by a digest.
const keyLong = 128

// between separates a message's id from its sender. It sorts before every character of
// an id.
const between = "\x01"

// inKey returns an id as part of a key: without slashes and control characters, and
// not longer than keyLong.
func inKey(id string) string {
	if strings.ContainsFunc(id, unsafeInKey) {
		b := make([]byte, 0, len(id)+8)
		for i := range len(id) {
			if c := id[i]; unsafeInKey(rune(c)) {
				b = fmt.Appendf(b, "%%%02x", c)
			} else {
				b = append(b, c)
			}
		}
		id = string(b)
	}
	if len(id) <= keyLong {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return id[:keyLong/2] + "~" + hex.EncodeToString(sum[:16])
}

func unsafeInKey(r rune) bool { return r < 0x20 || r == 0x7f || r == '/' || r == '%' }

// MessageKey is the key of a message in its conversation's order.
func (p Place) MessageKey(m *Message) string {
	return prefixMessage + p.Channel + "/" + p.ID + "/" + hex16(m.TS) + "/" + inKey(m.ID) + between + inKey(m.From)
}

// everyone is the addressee of messages to all; no peer has this name.
const everyone = "-"

// addressee returns the peer that a message is delivered to; empty: none.
func (m *Message) addressee(peers []string) string {
	switch {
	case m.To != "":
		return m.To
	case !m.Opens():
		return ""
	case len(peers) != 2:
		return everyone
	case m.From == peers[0]:
		return peers[1]
	}
	return peers[0]
}

// Effects returns what follows from a folded message with an id and sequence of the
// log: the claim of new work, and the entries for lists and lookups. peers are the two
// of a direct room, or none.
func (c *Conversation) Effects(m *Message, id string, seq uint64, peers []string) (channel.Effects, error) {
	e, err := c.Listing(peers)
	if err != nil {
		return channel.Effects{}, err
	}
	put := func(key string, value []byte) { e.Index = append(e.Index, channel.IndexEntry{Key: key, Value: value}) }
	put(c.Place.MessageKey(m), strconv.AppendUint(nil, seq, 10))
	where, err := c.where(m.TS, seq)
	if err != nil {
		return channel.Effects{}, err
	}
	put(prefixID+inKey(m.ID)+between+inKey(m.From), where)
	if to := m.addressee(peers); to != "" {
		put(prefixTold+c.Place.Channel+"/"+inKey(to)+"/"+id, told(seq))
	}
	if c.NewSpeaker && m.To == "" && peers == nil {
		put(prefixSpeaker+c.Place.Channel+"/"+inKey(m.From), nil)
	}
	if w, ok := c.Works.Get(m.Work); ok && m.Work != "" {
		row, err := c.workRow(m.Work, w)
		if err != nil {
			return channel.Effects{}, err
		}
		put(prefixWork+m.Work, row)
		if c.Opened {
			e.Claims = []string{WorkClaim(m.Work)}
		}
	}
	return e, nil
}

// Listing updates the conversation's row, which lists order by its newest activity.
func (c *Conversation) Listing(peers []string) (channel.Effects, error) {
	row, err := c.row(peers)
	if err != nil {
		return channel.Effects{}, err
	}
	e := channel.Effects{Index: make([]channel.IndexEntry, 0, 6)}
	put := func(key string, value []byte) { e.Index = append(e.Index, channel.IndexEntry{Key: key, Value: value}) }
	put(c.Place.activityKey(c.Last.TS), row)
	if c.WasListed && c.Previous.TS == c.Last.TS {
		return e, nil
	}
	put(prefixName+c.Place.Channel+"/"+c.Place.ID, []byte(newestFirst(c.Last.TS)))
	for _, peer := range peers {
		put(c.Place.peerKey(peer, c.Last.TS), nil)
	}
	if c.WasListed {
		e.Unindex = append(e.Unindex, c.Place.activityKey(c.Previous.TS))
		for _, peer := range peers {
			e.Unindex = append(e.Unindex, c.Place.peerKey(peer, c.Previous.TS))
		}
	}
	return e, nil
}

// where encodes the place of a message, which is found by its id.
func (c *Conversation) where(ts int64, seq uint64) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, 128+len(c.Place.Channel)+len(c.Place.ID))}
	b.Open('{')
	b.Key("channel").String(c.Place.Channel)
	b.Key("id").String(c.Place.ID)
	b.Key("ts").Int(int(ts))
	b.Key("seq").Checked(strconv.AppendUint(nil, seq, 10))
	if c.Now != None {
		b.Key("was").String(c.Was.String())
		b.Key("now").String(c.Now.String())
	}
	b.Close('}')
	return b.Result()
}

// told encodes the place of a message that is delivered to a peer.
func told(seq uint64) []byte {
	return append(strconv.AppendUint([]byte(`{"seq":`), seq, 10), '}')
}

// row encodes what lists show of a conversation. Every message writes it, so it leaves
// out what its key has, zero values, and texts that lists read from the log.
func (c *Conversation) row(peers []string) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, 256)}
	number := func(name string, n int) {
		if n != 0 {
			b.Key(name).Int(n)
		}
	}
	var long Texts
	text := func(name, s string, which Texts) {
		switch {
		case wasCut(s):
			long |= which
		case s != "":
			b.Key(name).String(s)
		}
	}
	b.Open('{')
	if peers != nil {
		b.Key("peers").Strings(peers)
	}
	if c.Root != "" {
		b.Key("root").String(c.Root).Key("opener").String(c.Opener)
	}
	text("title", c.Title, Title)
	number("opened_at", int(c.OpenedAt))
	text("preview", c.Preview, Preview)
	number("messages", c.Messages)
	number("speakers", c.Speakers.Len())
	number("open_work", c.OpenWork)
	if c.publicCount() > 0 {
		b.Key("public").Open('[')
		for _, n := range c.Public {
			b.Int(n)
		}
		b.Close(']')
		number("last_public_at", int(c.LastPublic.TS))
		b.Key("last_public_id").String(c.LastPublic.ID)
		text("public_preview", c.PublicPreview, PublicPreview)
	}
	number("long", int(long))
	b.Close('}')
	return b.Result()
}

func (c *Conversation) workRow(id string, w Work) ([]byte, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{')
	b.Key("channel").String(c.Place.Channel)
	b.Key("id").String(c.Place.ID)
	b.Key("work_id").String(id)
	w.write(b.Key("work"))
	b.Close('}')
	return b.Result()
}
