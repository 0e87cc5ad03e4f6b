package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/view"
)

type messagesBody struct {
	As       string           `json:"as"`
	Messages []jsontext.Value `json:"messages"`
}

// showMessages shows a channel as canonical messages, as one of its participants sees
// it: the caller, the one that the request names, or the creator.
func (a *API) showMessages(c *call) error {
	m, as, err := a.eyes(c)
	if err != nil {
		return err
	}
	in, release, err := a.viewLog(c, m, as, 0)
	if err != nil {
		return err
	}
	defer release()
	body := messagesBody{As: as, Messages: []jsontext.Value{}}
	for _, e := range view.Messages(in) {
		text, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		body.Messages = append(body.Messages, text)
	}
	release()
	return c.write(http.StatusOK, body)
}
