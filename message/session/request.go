package session

import (
	"cmp"
	"strings"

	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// request is an ability's input with who asks and where.
type request struct {
	principal transcript.Principal
	owner     transcript.Owner
	scope     transcript.Scope
	input     *value.Map
}

func (s Service) request(principal *transcript.Principal, input *value.Map) (request, error) {
	if principal == nil {
		return request{}, refuse(CodeUnauthenticated, "log in first")
	}
	owner, ok := principal.Owner()
	if !ok {
		return request{}, refuse(CodeOwnerRequired, "the principal owns no conversations")
	}
	if asserted := input.At("session_owner"); asserted != nil {
		if err := matchOwner(value.MapOrEmpty(asserted), owner); err != nil {
			return request{}, err
		}
	}
	if s.Store == nil {
		return request{}, refuse(CodeNoStore, "no conversation store is configured")
	}
	if s.UsersOnly && owner.Type != transcript.OwnerUser {
		return request{}, refuse(CodePrincipalStore, "the conversation store serves users only")
	}
	scope, err := s.scope(input.At("workspace"))
	if err != nil {
		return request{}, failed(CodeInvalidWorkspace, err.Error(), err)
	}
	return request{principal: *principal, owner: owner, scope: scope, input: input}, nil
}

// matchOwner compares an owner named in a request with the authenticated one.
func matchOwner(asserted *value.Map, owner transcript.Owner) error {
	ownerType, key := text(asserted, "type"), text(asserted, "key")
	if ownerType == "" || key == "" {
		return refuse(CodeInvalidOwner, "an owner needs a type and a key")
	}
	if ownerType == "audience" && (key == "public" || key == "audience:public") {
		return refuse(CodeNonIsolatingOwner, "the public owns no conversations")
	}
	if ownerType == transcript.OwnerUser {
		key = strings.TrimPrefix(key, "user:")
	}
	if (transcript.Owner{Type: ownerType, Key: key}) == owner {
		return nil
	}
	if ownerType == transcript.OwnerUser {
		return refuse(CodeUserForbidden, "the owner is not the user who asks")
	}
	return refuse(CodeOwnerForbidden, "the owner is not the principal who asks")
}

func (s Service) scope(raw any) (transcript.Scope, error) {
	if raw != nil {
		return transcript.ScopeFrom(raw)
	}
	id := cmp.Or(s.SiteID, defaultScopeID)
	return transcript.NewScope(defaultScopeType, id)
}
