package compact

import (
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// What every item carries, and the code of every refusal of one.
const (
	ItemSchema  = "agents-api.compaction-item"
	ItemVersion = 1
	ItemCode    = "invalid_ai_compaction_item"
)

// ItemError is the refusal of a compaction item.
type ItemError struct{ Reason string }

func (e *ItemError) Error() string { return ItemCode + ": " + e.Reason }

// Item is anything that can be compacted, in one shape.
type Item struct {
	ID       string
	Type     string
	Content  any
	Metadata *value.Map
	Group    string     // "" is none
	Boundary *value.Map // nil is none
}

// Canonical returns the item as a map.
func (i Item) Canonical() *value.Map {
	m := value.New().
		Set("schema", ItemSchema).
		Set("version", value.Int(ItemVersion)).
		Set("id", i.ID).
		Set("type", i.Type).
		Set("content", i.Content).
		Set("metadata", i.Metadata)
	m.SetText("group", i.Group)
	if i.Boundary != nil {
		m.Set("boundary", i.Boundary)
	}
	return m
}

// NormalizeItem reads an item. Its position, if there is one, is part of the
// id that an item without one gets.
func NormalizeItem(raw any, index *int64) (Item, error) {
	raw = value.Of(raw)
	if !value.IsContainer(raw) {
		return Item{}, &ItemError{"item must be an array"}
	}
	m, _ := raw.(*value.Map)
	var item Item
	var err error
	if item.Type, err = text(m.At("type"), "type"); err != nil {
		return Item{}, err
	}
	if item.Content, err = content(m); err != nil {
		return Item{}, err
	}
	if item.Metadata, err = stringMap(m.At("metadata"), "metadata"); err != nil {
		return Item{}, err
	}
	if item.Metadata == nil {
		item.Metadata = value.New()
	}
	if group := m.At("group"); group != nil {
		if item.Group, err = text(group, "group"); err != nil {
			return Item{}, err
		}
	}
	if item.Boundary, err = stringMap(m.At("boundary"), "boundary"); err != nil {
		return Item{}, err
	}
	item.ID = item.hash(index)
	if id := m.At("id"); id != nil {
		if item.ID, err = text(id, "id"); err != nil {
			return Item{}, err
		}
	}
	if value.Check(item.Canonical(), 0) != nil {
		return Item{}, &ItemError{"item must be JSON serializable"}
	}
	return item, nil
}

// ItemFromMessage makes an item of a message, its role and payload kept in the
// metadata.
func ItemFromMessage(raw any, index *int64) (Item, error) {
	e, err := message.Normalize(raw)
	if err != nil {
		return Item{}, err
	}
	role, err := text(e.Role, "role")
	if err != nil {
		return Item{}, err
	}
	m := value.New().
		Set("type", "message:"+string(e.Type)).
		Set("content", e.Content).
		Set("metadata", e.Metadata.Clone().Set("message",
			value.New().Set("role", role).Set("payload", e.Payload)))
	m.SetText("id", e.ID)
	return NormalizeItem(m, index)
}

// hash returns the id of an item that has none.
func (i Item) hash(index *int64) string {
	source := value.New().
		Set("boundary", nil).
		Set("content", i.Content).
		Set("group", nil).
		Set("index", nil).
		Set("metadata", i.Metadata).
		Set("type", i.Type)
	if i.Boundary != nil {
		source.Set("boundary", i.Boundary)
	}
	source.SetText("group", i.Group)
	if index != nil {
		source.Set("index", value.Int(*index))
	}
	return "item-" + shortHash(value.SortKeys(source))
}

func text(v any, field string) (string, error) {
	s, _ := v.(string)
	if s = value.Trim(s); s == "" {
		return "", &ItemError{field + " must be a non-empty string"}
	}
	return s, nil
}

func content(m *value.Map) (any, error) {
	v, ok := m.Get("content")
	if !ok {
		return nil, &ItemError{"content is required"}
	}
	if _, isText := v.(string); !isText && !value.IsContainer(v) {
		return nil, &ItemError{"content must be a string or array"}
	}
	return v, nil
}

// stringMap reads an optional map: null is none.
func stringMap(v any, field string) (*value.Map, error) {
	if v == nil {
		return nil, nil
	}
	if !value.IsContainer(v) {
		return nil, &ItemError{field + " must be an array"}
	}
	return value.StringKeys(v), nil
}
