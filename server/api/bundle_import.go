package api

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bundle"
)

// importBundle makes new, ended channels from a bundle. If the bundle turns out to
// be damaged, everything imported from it is removed.
func (a *API) importBundle(c *call) error {
	if !a.importing.CompareAndSwap(false, true) {
		return fault.New(fault.Unavailable, "a bundle is being imported; try again when that has ended")
	}
	defer a.importing.Store(false)
	in, err := bundle.NewReader(&steady{from: c.Body, control: http.NewResponseController(c.ResponseWriter), wait: a.cfg.Limits.Write})
	if err != nil {
		return tooLong(err)
	}
	into := imports{api: a, call: c, in: in, ids: map[string]string{}}
	if err := into.read(); err != nil {
		into.undo()
		return tooLong(err)
	}
	return c.write(http.StatusCreated, into.told)
}

func tooLong(err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.New(fault.TooLarge, "the bundle is over %d bytes (limits.import)", over.Limit)
	}
	return err
}

// imports is one bundle that is being imported.
type imports struct {
	api  *API
	call *call
	in   *bundle.Reader
	home string            // id of the new home, if it has one
	ids  map[string]string // new ids of channels by their old ones
	told importedBody
}

type importedBody struct {
	HomeID   *string           `json:"home_id"`
	Channels []importedChannel `json:"channels"`
	Contents int               `json:"contents"`
}

type importedChannel struct {
	ID        string `json:"channel_id"`
	From      string `json:"imported_from"`
	Envelopes uint64 `json:"envelopes"`
}

// homeKind is the kind of the homes that imports make: no dialect lists them.
const homeKind = "import"

func (i *imports) read() error {
	ctx := i.call.Context()
	i.told.Channels = []importedChannel{}
	if from := i.in.Manifest.Home; from != nil {
		// Each import has a new home: a bundle may be imported twice.
		home, err := i.api.hub.Home(ctx, homeKind, from.Kind+"/"+from.Name+"/"+rand.Text())
		if err != nil {
			return err
		}
		i.home, i.told.HomeID = home.ID, &home.ID
	}
	for {
		part, err := i.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && part.Content != nil {
			err = i.content(part.Content)
		} else if err == nil {
			err = i.channel(part)
		}
		if err != nil {
			return err
		}
	}
}

func (i *imports) channel(part bundle.Part) error {
	old := part.Metadata.ID
	part.Metadata.MembersOf = i.ids[part.Metadata.MembersOf]
	m, err := i.api.hub.Import(i.call.Context(), hub.Imported{
		Metadata: part.Metadata, Envelopes: asImported(i.in.Envelopes(part.Channel)), Home: i.home, From: old, By: i.call.who.hub(),
	})
	if err != nil {
		return err
	}
	i.ids[old] = m.ID
	i.told.Channels = append(i.told.Channels, importedChannel{m.ID, old, part.Channel.Envelopes})
	return nil
}

func asImported(entries iter.Seq2[bundle.Entry, error]) iter.Seq2[hub.ImportedEnvelope, error] {
	return func(yield func(hub.ImportedEnvelope, error) bool) {
		for e, err := range entries {
			if !yield(hub.ImportedEnvelope{Envelope: e.Envelope, Side: e.Side}, err) {
				return
			}
		}
	}
}

func (i *imports) content(info *bundle.Content) error {
	_, err := i.api.hub.PutContent(i.call.Context(), i.home, hub.ContentInfo{
		ID: info.ID, CreatedAt: info.CreatedAt, Name: info.Name, Type: info.Type, Size: info.Size, SHA256: info.SHA256, By: info.By,
	}, i.in.Pieces())
	i.told.Contents++
	return err
}

// undoTime bounds the removal of a bundle that was not whole. What is left after it
// has the import's label.
const undoTime = time.Minute

// undo removes what was imported. It runs even if the caller is gone.
func (i *imports) undo() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(i.call.Context()), undoTime)
	defer cancel()
	by := i.call.who.hub()
	if i.home != "" {
		if err := i.api.hub.DeleteHome(ctx, i.home, by); err != nil {
			i.api.log.Warn("a home that was not imported whole is not removed", "home_id", i.home, "error", err)
		}
		return
	}
	for _, one := range i.told.Channels {
		if err := i.api.hub.Delete(ctx, one.ID, by); err != nil {
			i.api.log.Warn("a channel that was not imported whole is not removed", "channel_id", one.ID, "error", err)
		}
	}
}

// steady extends the read deadline of a body as long as bytes arrive.
type steady struct {
	from    io.Reader
	control *http.ResponseController
	wait    time.Duration
}

func (s *steady) Read(into []byte) (int, error) {
	// Where a deadline cannot be set, the server's deadline applies.
	_ = s.control.SetReadDeadline(time.Now().Add(s.wait))
	return s.from.Read(into)
}
