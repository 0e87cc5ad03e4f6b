package bridge

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// The refusals of an item.
var (
	ErrQueueID  = errors.New("queue_id must be non-empty.")                            //nolint:staticcheck // the contract's text
	ErrClient   = errors.New("client_id must be a non-empty slug.")                    //nolint:staticcheck // the contract's text
	ErrAgent    = errors.New("agent must be a non-empty slug.")                        //nolint:staticcheck // the contract's text
	ErrRole     = errors.New("role must be assistant, system, or tool.")               //nolint:staticcheck // the contract's text
	ErrContent  = errors.New("content must be non-empty.")                             //nolint:staticcheck // the contract's text
	ErrDelivery = errors.New("delivery_status must be pending, delivered, or failed.") //nolint:staticcheck // the contract's text
)

// Item is one reply for a client. Empty connector and session are null.
type Item struct {
	QueueID        string
	ClientID       string
	ConnectorID    string
	Agent          string
	SessionID      string
	Role           string
	Content        string
	Completed      bool
	CreatedAt      string
	DeliveryStatus string
	Metadata       *value.Map
}

// NewItem reads an item. One without an id gets a random one, one without a
// date the given time.
func NewItem(raw any, now time.Time) (Item, error) {
	m := value.MapOrEmpty(value.Of(raw))
	item := Item{
		QueueID:        value.Trim(textOr(m, "queue_id", "")),
		ClientID:       slug(textOr(m, "client_id", "")),
		ConnectorID:    slug(textOr(m, "connector_id", "")),
		Agent:          slug(textOr(m, "agent", "")),
		SessionID:      value.Trim(textOr(m, "session_id", "")),
		Role:           slug(textOr(m, "role", "assistant")),
		Content:        value.Trim(textOr(m, "content", "")),
		Completed:      m.At("completed") == nil || value.Truthy(m.At("completed")),
		CreatedAt:      textOr(m, "created_at", message.FormatTime(now)),
		DeliveryStatus: slug(textOr(m, "delivery_status", "pending")),
		Metadata:       value.StringKeys(m.At("metadata")),
	}
	if m.At("queue_id") == nil {
		item.QueueID = newQueueID()
	}
	return item, item.check()
}

func (i Item) check() error {
	switch {
	case i.QueueID == "":
		return ErrQueueID
	case i.ClientID == "":
		return ErrClient
	case i.Agent == "":
		return ErrAgent
	case i.Role != "assistant" && i.Role != "system" && i.Role != "tool":
		return ErrRole
	case i.Content == "":
		return ErrContent
	case i.DeliveryStatus != "pending" && i.DeliveryStatus != "delivered" && i.DeliveryStatus != "failed":
		return ErrDelivery
	default:
		return nil
	}
}

// Canonical returns the item as a map.
func (i Item) Canonical() *value.Map {
	return value.New().
		Set("queue_id", i.QueueID).
		Set("client_id", i.ClientID).
		Set("connector_id", orNull(i.ConnectorID)).
		Set("agent", i.Agent).
		Set("session_id", orNull(i.SessionID)).
		Set("role", i.Role).
		Set("content", i.Content).
		Set("completed", i.Completed).
		Set("created_at", i.CreatedAt).
		Set("delivery_status", i.DeliveryStatus).
		Set("metadata", i.Metadata)
}

// textOr returns the scalar string under key, or the fallback if it is not set.
func textOr(m *value.Map, key, fallback string) string {
	v := m.At(key)
	if v == nil {
		return fallback
	}
	return value.Text(v)
}

// slug folds a name: runs of characters other than letters, digits and dashes become a dash,
// and none is left at the ends.
func slug(s string) string {
	s = value.Trim(value.Lower(strings.ReplaceAll(s, "_", "-")))
	var b strings.Builder
	replaced := false
	for i := range len(s) {
		c := s[i]
		if (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' {
			b.WriteByte(c)
			replaced = false
			continue
		}
		if !replaced {
			b.WriteByte('-')
			replaced = true
		}
	}
	return strings.Trim(b.String(), "-")
}

func newQueueID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return "bridge_" + hex.EncodeToString(id[:])
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
