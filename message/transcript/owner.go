package transcript

import (
	"strconv"

	"github.com/parley-hub/parley/message/value"
)

// The types of owners the contract itself knows.
const (
	OwnerUser  = "user"
	OwnerToken = "token"
)

// SourceAgentToken is the source of a principal that is an agent's token.
const SourceAgentToken = "agent_token"

// Owner is who owns a session.
type Owner struct {
	Type string
	Key  string
}

// User returns the owner with that user id.
func User(id int64) Owner { return Owner{Type: OwnerUser, Key: strconv.FormatInt(id, 10)} }

// userID returns the user id of an owner, or 0.
func (o Owner) userID() int64 {
	if o.Type != OwnerUser {
		return 0
	}
	id, _ := strconv.ParseInt(o.Key, 10, 64)
	return max(0, id)
}

// Principal is who asks, as authenticated.
type Principal struct {
	OwnerType     string
	OwnerKey      string
	ActingUserID  int64
	Source        string
	TokenID       string
	Agent         string
	Administrator bool
}

// Owner returns the owner whose sessions a principal may see: the explicit one,
// else its user, unless it is an agent's token, else its token.
func (p Principal) Owner() (Owner, bool) {
	switch {
	case p.OwnerType != "" && p.OwnerKey != "":
		return Owner{Type: p.OwnerType, Key: p.OwnerKey}, true
	case p.ActingUserID > 0 && p.Source != SourceAgentToken:
		return User(p.ActingUserID), true
	case p.Source == SourceAgentToken && p.TokenID != "":
		return Owner{Type: OwnerToken, Key: p.TokenID}, true
	default:
		return Owner{}, false
	}
}

// Owns reports whether a row, as any store writes it, is this owner's in this
// workspace. principal_owner_* are read as owner_*; a row without either
// belongs to its user.
func Owns(row *value.Map, scope Scope, owner Owner) bool {
	if value.Text(row.At("workspace_type")) != scope.Type || value.Text(row.At("workspace_id")) != scope.ID {
		return false
	}
	ownerType := firstText(row, "owner_type", "principal_owner_type")
	ownerKey := firstText(row, "owner_key", "principal_owner_key")
	if ownerType == "" && ownerKey == "" {
		return owner.Type == OwnerUser && value.Text(row.At("user_id")) == owner.Key
	}
	return ownerType == owner.Type && ownerKey == owner.Key
}

func firstText(row *value.Map, keys ...string) string {
	for _, key := range keys {
		if text := value.Text(row.At(key)); text != "" {
			return text
		}
	}
	return ""
}
