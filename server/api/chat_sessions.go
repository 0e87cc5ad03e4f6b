package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message/session"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/server/access"
)

type chatSessionPage struct {
	Sessions []*value.Map `json:"sessions"`
	Next     string       `json:"next,omitzero"`
}

func (a *API) listChats(c *call) error {
	service, err := a.chats()
	if err != nil {
		return err
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	after, err := c.page(func(text string) bool { return strings.HasPrefix(text, "listed/") && len(text) < 200 })
	if err != nil {
		return err
	}
	who, err := a.chatter(c, c.URL.Query().Get("as"))
	if err != nil {
		return err
	}
	owner, _ := who.Owner()
	most := min(limit.entries, 100)
	rows, err := service.Store().List(c.Context(), chatScope, owner, transcript.Query{
		Limit: &most, After: after, AgentSlug: c.URL.Query().Get("agent"),
	})
	if err != nil {
		return err
	}
	page := chatSessionPage{Sessions: []*value.Map{}}
	for _, row := range rows {
		page.Sessions = append(page.Sessions, row.Summary())
	}
	if len(rows) == most {
		page.Next = rows[most-1].Cursor
	}
	return c.write(http.StatusOK, page)
}

type newChatBody struct {
	As       string         `json:"as"`
	Agent    string         `json:"agent"`
	Metadata jsontext.Value `json:"metadata"`
}

func (a *API) createChat(c *call) error {
	var body newChatBody
	if err := c.readOptional(&body); err != nil {
		return err
	}
	service, err := a.chats()
	if err != nil {
		return err
	}
	if body.Agent != "" {
		if body.Agent, err = service.Agent(c.Context(), body.Agent); err != nil {
			return err
		}
	}
	input := value.New().Set("agent", body.Agent)
	if len(body.Metadata) > 0 {
		metadata, err := value.Decode(body.Metadata)
		if _, ok := value.AsMap(metadata); err != nil || !ok {
			return fault.New(fault.Invalid, "metadata is an object")
		}
		input.Set("metadata", metadata)
	}
	return a.chatAbility(c, session.AbilityCreate, body.As, input, http.StatusCreated)
}

func (a *API) showChat(c *call) error {
	return a.chatAbility(c, session.AbilityGet, c.URL.Query().Get("as"), value.New().Set("session_id", c.PathValue("id")), http.StatusOK)
}

type chatTitleBody struct {
	As    string `json:"as"`
	Title string `json:"title"`
}

func (a *API) renameChat(c *call) error {
	var body chatTitleBody
	if err := c.read(&body); err != nil {
		return err
	}
	return a.chatAbility(c, session.AbilityTitle, body.As, value.New().Set("session_id", c.PathValue("id")).Set("title", body.Title), http.StatusOK)
}

func (a *API) deleteChat(c *call) error {
	return a.chatAbility(c, session.AbilityDelete, c.URL.Query().Get("as"), value.New().Set("session_id", c.PathValue("id")), http.StatusOK)
}

// chatAbility calls an ability of sessions and answers with its result.
func (a *API) chatAbility(c *call, ability, as string, input *value.Map, status int) error {
	service, err := a.chats()
	if err != nil {
		return err
	}
	who, err := a.chatter(c, as)
	if err != nil {
		return err
	}
	who.Administrator = c.who.Has(access.Operator)
	answer, err := session.Service{Store: service.Store()}.Do(c.Context(), ability, &who, input.Set("workspace", chatScope.Canonical()))
	if err != nil {
		return chatRefusal(err)
	}
	return c.write(status, answer)
}

// chatRefusal gives a refusal of sessions a code of the catalogue. The session of
// another owner is reported as not found.
func chatRefusal(err error) error {
	var coded *fault.Error
	var refused *session.Error
	if errors.As(err, &coded) {
		return coded
	}
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Status() {
	case http.StatusNotFound, http.StatusForbidden:
		return fault.Wrap(fault.NotFound, err, "there is no such session of yours")
	case http.StatusInternalServerError:
		return fault.Wrap(fault.Internal, err, "%s", refused.Text)
	}
	return fault.Wrap(fault.Invalid, err, "%s", refused.Text)
}
