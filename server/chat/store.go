package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	adapter "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// StoreConfig says how sessions are kept. Zero values are the defaults.
type StoreConfig struct {
	Hub *hub.Hub
	// Writer is the identity that writes for an owner.
	Writer func(ctx context.Context, owner transcript.Owner) (string, error)
	// Sessions is how many an owner may have (chat.sessions): 1,000.
	Sessions int
	// Event is how many bytes a record's payload may have (limits.event): 1 MiB.
	Event int
	// Read is how many bytes of a log a transcript may be read from (limits.view):
	// 64 MiB.
	Read int
}

// Store keeps chat sessions as channels of a hub. An owner's sessions in one
// workspace share a home, so that its run ids are one set.
type Store struct {
	cfg StoreConfig
	hub *hub.Hub
}

var _ transcript.Store = (*Store)(nil)

// NewStore makes a store.
func NewStore(cfg StoreConfig) *Store {
	cfg.Sessions, cfg.Event, cfg.Read = cmp.Or(cfg.Sessions, 1000), cmp.Or(cfg.Event, 1<<20), cmp.Or(cfg.Read, 64<<20)
	return &Store{cfg: cfg, hub: cfg.Hub}
}

// Create makes an empty session.
func (s *Store) Create(ctx context.Context, scope transcript.Scope, owner transcript.Owner, create transcript.Create) (string, error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	id := uuid(random)
	return id, s.create(ctx, id, scope, owner, create)
}

// CreateFor makes the session of a first run, or finds it: its id is derived
// from the owner and the run's id.
func (s *Store) CreateFor(ctx context.Context, runID string, scope transcript.Scope, owner transcript.Owner, create transcript.Create) (string, error) {
	sum := sha256.Sum256([]byte(homeName(scope, owner) + "\x00" + runID))
	id := uuid([16]byte(sum[:16]))
	return id, s.create(ctx, id, scope, owner, create)
}

func (s *Store) create(ctx context.Context, id string, scope transcript.Scope, owner transcript.Owner, create transcript.Create) error {
	metadata, err := encodeMap(create.Metadata)
	if err != nil {
		return err
	}
	knobs, err := adapter.Knobs{
		ScopeType: scope.Type, ScopeID: scope.ID, OwnerType: owner.Type, OwnerKey: owner.Key,
		Agent: create.AgentSlug, Context: cmp.Or(create.Context, transcript.DefaultContext), Metadata: metadata,
	}.Bytes()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "a session cannot be described: %v", err)
	}
	writer, err := s.cfg.Writer(ctx, owner)
	if err != nil {
		return err
	}
	home, err := s.hub.Home(ctx, adapter.Dialect, homeName(scope, owner))
	if err != nil {
		return err
	}
	if err := s.room(ctx, home.ID, id); err != nil {
		return err
	}
	p := s.hub.AdmitNamed(ctx, hub.Opening{
		Creator: writer, Type: adapter.Type, Home: home.ID, Name: id, Knobs: knobs, Dialect: adapter.Dialect,
	}, record(writer, adapter.TypeCreated, []byte(`{}`), "session/"+id), nil)
	_, err = p.Wait(ctx)
	return err
}

// room refuses a session beyond an owner's limit.
func (s *Store) room(ctx context.Context, home, id string) error {
	after, n := "", 0
	for {
		page, err := s.hub.Entries(ctx, hub.EntryQuery{Type: adapter.Type, Home: home, Prefix: adapter.IndexSession, After: after, Limit: 1000})
		if err != nil {
			return err
		}
		n += len(page.Entries)
		for _, e := range page.Entries {
			if e.Key == adapter.IndexSession+id {
				return nil // it is there already
			}
		}
		if n >= s.cfg.Sessions {
			return fault.Wrap(fault.TooLarge, transcript.ErrFull, "the owner has %d sessions, which is the limit (chat.sessions); delete some first", s.cfg.Sessions)
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// homeName returns the home of an owner's sessions in a workspace.
func homeName(scope transcript.Scope, owner transcript.Owner) string {
	name, _ := json.Marshal([]string{scope.Type, scope.ID, owner.Type, owner.Key}) // texts always encode
	return string(name)
}

// record returns an envelope of the server's own.
func record(writer, eventType string, data []byte, key string) *envelope.Envelope {
	return &envelope.Envelope{Sender: writer, Type: eventType, Data: data, Ext: adapter.Mark, Key: key, Priority: envelope.Normal}
}

// find returns the channel of a session; "" if there is none.
func (s *Store) find(ctx context.Context, id string) (string, error) {
	if id == "" || len(id) > 64 {
		return "", nil
	}
	page, err := s.hub.Entries(ctx, hub.EntryQuery{Type: adapter.Type, Kind: adapter.Dialect, Prefix: adapter.IndexSession + id, Limit: 1})
	if err != nil {
		return "", err
	}
	for _, e := range page.Entries {
		if e.Key == adapter.IndexSession+id {
			return e.Channel, nil
		}
	}
	return "", nil
}

// Get returns a session.
func (s *Store) Get(ctx context.Context, id string) (transcript.Session, error) {
	channelID, err := s.find(ctx, value.Trim(id))
	if err != nil {
		return transcript.Session{}, err
	}
	return s.read(ctx, channelID, true)
}

// read reads a session from its channel.
func (s *Store) read(ctx context.Context, channelID string, withMessages bool) (transcript.Session, error) {
	if channelID == "" {
		return transcript.Session{}, transcript.ErrNotFound
	}
	m, err := s.hub.Channel(ctx, channelID)
	if hub.Deleted(err) {
		return transcript.Session{}, transcript.ErrNotFound
	}
	if err != nil {
		return transcript.Session{}, err
	}
	state, err := s.state(ctx, channelID)
	if err != nil {
		return transcript.Session{}, missing(err)
	}
	k, err := adapter.ParseKnobs(m)
	if err != nil {
		return transcript.Session{}, err
	}
	metadata, err := decodeMap(state.Details.Metadata)
	if err != nil {
		return transcript.Session{}, err
	}
	session := transcript.Session{
		ID: m.Name, Scope: transcript.Scope{Type: k.ScopeType, ID: k.ScopeID}, Owner: transcript.Owner{Type: k.OwnerType, Key: k.OwnerKey},
		AgentSlug: k.Agent, Title: text(state.Details.Title), Metadata: metadata, Provider: text(state.Details.Provider), Model: text(state.Details.Model),
		ProviderResponseID: state.Details.ResponseID, Context: k.Context,
		CreatedAt: message.FormatTime(m.CreatedAt), UpdatedAt: message.FormatTime(state.Updated), Cursor: adapter.ListKey(m.CreatedAt, m.ID),
	}
	if session.ProviderResponseID != nil {
		own := *session.ProviderResponseID
		session.ProviderResponseID = &own
	}
	if withMessages {
		rows, _, err := s.rows(ctx, channelID, state)
		if err != nil {
			return transcript.Session{}, missing(err)
		}
		session.Messages = make([]transcript.Row, 0, len(rows))
		for _, raw := range rows {
			session.Messages = append(session.Messages, transcript.ReadRow(raw))
		}
	}
	return session, nil
}

// missing turns the error for a channel that was deleted meanwhile into that
// for an unknown session.
func missing(err error) error {
	if hub.Deleted(err) {
		return transcript.ErrNotFound
	}
	return err
}

func (s *Store) state(ctx context.Context, channelID string) (*adapter.State, error) {
	folded, err := s.hub.State(ctx, channelID)
	if err != nil {
		return nil, err
	}
	state, ok := folded.(*adapter.State)
	if !ok {
		return nil, fault.New(fault.Internal, "channel '%s' is not a session", channelID)
	}
	return state, nil
}

// rows reads a transcript, and which record changed it last.
func (s *Store) rows(ctx context.Context, channelID string, state *adapter.State) (rows adapter.Rows, changed uint64, err error) {
	size := 0
	for e, err := range s.hub.Log(ctx, channelID, max(1, state.Base), 0) {
		if err != nil {
			return nil, 0, err
		}
		switch e.Type {
		case adapter.TypeAppended, adapter.TypeReplaced, adapter.TypeCompacted:
			if size += len(e.Data); size > s.cfg.Read {
				return nil, 0, fault.New(fault.TooLarge, "the session's transcript is made of more than %d bytes (limits.view); begin a new session", s.cfg.Read)
			}
			rows, changed = adapter.Apply(rows, e.Type, e.Data), e.Seq
		}
	}
	return rows, changed, nil
}

// Delete removes a session and its conversations with agents.
func (s *Store) Delete(ctx context.Context, id string) (bool, error) {
	channelID, err := s.find(ctx, id)
	if err != nil || channelID == "" {
		return err == nil, err
	}
	state, err := s.state(ctx, channelID)
	if err != nil {
		return hub.Deleted(err), fault.IgnoreNotFound(err)
	}
	for talk := 0; talk <= state.Talk; talk++ {
		if err := s.endTalk(ctx, channelID, id, talk); err != nil {
			return false, err
		}
	}
	err = fault.IgnoreNotFound(s.hub.Delete(ctx, channelID, nil))
	return err == nil, err
}

func (s *Store) endTalk(ctx context.Context, channelID, id string, talk int) error {
	conversation, err := s.hub.Named(ctx, hub.HomeOf(channelID), talkType, talkName(id, talk))
	if err != nil {
		return fault.IgnoreNotFound(err)
	}
	return fault.IgnoreNotFound(s.hub.Delete(ctx, conversation, nil))
}

// uuid writes 16 bytes as a UUID of version 4.
func uuid(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func text(t *string) string { return *cmp.Or(t, new(string)) }

func encodeMap(m *value.Map) (jsontext.Value, error) {
	if m == nil {
		m = value.New()
	}
	if err := value.Check(value.Of(m), 1); err != nil {
		return nil, fmt.Errorf("transcript: metadata must be JSON serializable: %w", err)
	}
	return value.Append(nil, m)
}

func decodeMap(raw jsontext.Value) (*value.Map, error) {
	if len(raw) == 0 {
		return value.New(), nil
	}
	v, err := value.Decode(raw)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "metadata cannot be read: %v", err)
	}
	return value.MapOrEmpty(v), nil
}

// conflict reports whether another writer was faster.
func conflict(err error) bool { return fault.CodeOf(err) == fault.Conflict }

// lockTime returns the moment until which a lock is valid.
func (s *Store) lockTime(ttl time.Duration) int64 {
	return s.hub.Clock().Add(transcript.LockTTL(ttl)).UnixNano()
}

var errTooLarge = errors.New("chat: too large for one record")

// talkType and talkName name the channel in which a session talks to its
// agent.
const talkType = "conversation"

func talkName(session string, talk int) string { return fmt.Sprintf("%s/%d", session, talk) }
