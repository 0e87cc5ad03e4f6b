package api

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bundle"
	"github.com/parley-hub/parley/internal/replay"
	"github.com/parley-hub/parley/server/access"
)

// exportBundle downloads a channel, or its home, as it is stored. This includes
// envelopes that only some participants may see, because the fold needs them.
func (a *API) exportBundle(c *call, m *channel.Metadata) error {
	if !c.who.Has(access.Reader) {
		return fault.New(fault.AccessDenied, "a bundle has what others alone may see; an operator's or a reader's key is needed")
	}
	manifest := bundle.Manifest{ExportedAt: time.Now().UTC(), Hub: a.cfg.Version, Channels: 1}
	whole, err := c.flag("home")
	if err != nil {
		return err
	}
	if whole {
		if !c.who.Has(access.Operator) {
			return fault.New(fault.AccessDenied, "a home has channels that readers do not see; an operator's key is needed")
		}
		home, err := a.hub.HomeByID(c.Context(), hub.HomeOf(m.ID))
		if err != nil {
			return fault.New(fault.Invalid, "channel '%s' is in no home; leave out home", m.ID)
		}
		return a.exportHome(c, m, home, manifest)
	}
	begin, beside, err := a.bundled(c, m)
	if err != nil {
		return err
	}
	manifest.Channel = begin
	return a.streamBundle(c, m, manifest, func(w *bundle.Writer) error { return a.writeChannel(c, w, m, begin.Envelopes, beside) })
}

// streamBundle answers with a bundle. A truncated bundle has no checksum.
func (a *API) streamBundle(c *call, m *channel.Metadata, manifest bundle.Manifest, write func(*bundle.Writer) error) error {
	if err := c.answer.Begin(c.Context(), a.cfg.Limits.Write); err != nil {
		return err
	}
	c.download(m, exportForms["bundle"])
	out := c.answer.Pieces(c.Request, c.ResponseWriter, a.cfg.Limits.Write)
	w := bundle.NewWriter(out, manifest)
	if err := write(w); err != nil {
		a.log.Warn("a bundle was not written to its end", "channel_id", m.ID, "error", err)
		panic(http.ErrAbortHandler) // so that the caller sees a broken connection
	}
	if w.Close() == nil {
		_ = out.End("")
	}
	return nil
}

// bundled returns a channel's first line of a bundle, and its side log.
func (a *API) bundled(c *call, m *channel.Metadata) (bundle.Channel, []*envelope.Envelope, error) {
	at, err := a.hub.Position(c.Context(), m.ID)
	if err != nil {
		return bundle.Channel{}, nil, err
	}
	meta, err := m.MarshalJSON()
	if err != nil {
		return bundle.Channel{}, nil, err
	}
	beside, err := a.hub.Side(c.Context(), m.ID)
	if err != nil {
		return bundle.Channel{}, nil, err
	}
	beside = slices.DeleteFunc(beside, func(e *envelope.Envelope) bool { return e.Seq > at.Seq })
	begin := bundle.Channel{Metadata: meta, Adapter: m.Manifest.Type + "/" + strconv.Itoa(m.Manifest.Version), Envelopes: at.Seq, Side: uint64(len(beside)), Names: map[string]string{}}
	for _, id := range m.IDs() {
		begin.Names[id] = a.hub.Name(id)
	}
	if adapter, err := a.hub.Adapter(c.Context(), m.ID); err == nil {
		begin.FoldVersion = adapter.Codec().Version
	}
	return begin, beside, nil
}

// writeChannel writes a channel's envelopes and its side log, and the state that
// they fold to.
func (a *API) writeChannel(c *call, w *bundle.Writer, m *channel.Metadata, length uint64, beside []*envelope.Envelope) error {
	end := bundle.End{Sequence: length}
	var fold *replay.Fold
	if adapter, err := a.hub.Adapter(c.Context(), m.ID); err == nil {
		fold, _ = replay.New(adapter, m, hub.HubMade) // a channel whose adapter is gone is still written
	}
	besides := func(through uint64) error {
		for ; len(beside) > 0 && beside[0].Seq <= through; beside = beside[1:] {
			beside[0].Seq = through // after the envelope written last
			if err := w.Side(beside[0]); err != nil {
				return err
			}
			if fold != nil {
				fold.Beside(beside[0])
			}
		}
		return nil
	}
	if err := besides(0); err != nil {
		return err
	}
	for e, err := range a.hub.Log(c.Context(), m.ID, 1, length) {
		if err != nil {
			return err
		}
		if !a.stands(c.who) {
			return errors.New("the key was revoked")
		}
		c.answer.Read(perEntry)
		if err := w.Envelope(e); err != nil {
			return err
		}
		if fold != nil {
			fold.Next(e)
		}
		if err := besides(e.Seq); err != nil {
			return err
		}
	}
	if fold != nil {
		end.Expected = fold.Expected()
		end.State, _ = fold.State()
	}
	return w.End(end)
}

// exportHome downloads a home with its channels and its content.
func (a *API) exportHome(c *call, m *channel.Metadata, home hub.Home, manifest bundle.Manifest) error {
	manifest.Home, manifest.Channels = &bundle.Home{ID: home.ID, Kind: home.Kind, Name: home.Name}, 0
	var ids []string // the channels there are now; later ones are not included
	for m, err := range a.hub.ChannelsIn(c.Context(), home.ID) {
		if err != nil {
			return err
		}
		if ids = append(ids, m.ID); len(ids) > maxBundled {
			return fault.New(fault.TooLarge, "the home has more than %d channels; export them one by one, or make a backup", maxBundled)
		}
	}
	contents, err := a.contentsOf(c, home.ID)
	if err != nil {
		return err
	}
	manifest.Channels, manifest.Contents = len(ids), len(contents)
	return a.streamBundle(c, m, manifest, func(w *bundle.Writer) error {
		for _, id := range ids {
			one, err := a.hub.Channel(c.Context(), id)
			if err != nil {
				return err
			}
			begin, beside, err := a.bundled(c, one)
			if err != nil {
				return err
			}
			if err := w.Channel(begin); err != nil {
				return err
			}
			if err := a.writeChannel(c, w, one, begin.Envelopes, beside); err != nil {
				return err
			}
		}
		for _, info := range contents {
			if err := a.writeContent(c, w, home.ID, info); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxBundled is how many channels or contents of a home one bundle holds.
const maxBundled = 100_000

func (a *API) contentsOf(c *call, home string) (all []hub.ContentInfo, err error) {
	for page := (hub.ContentPage{Limit: 1000}); ; {
		list, next, err := a.hub.Contents(c.Context(), home, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, list...); len(all) > maxBundled {
			return nil, fault.New(fault.TooLarge, "the home has more than %d contents; make a backup", maxBundled)
		}
		if page.After = next; next == "" {
			return all, nil
		}
	}
}

func (a *API) writeContent(c *call, w *bundle.Writer, home string, info hub.ContentInfo) error {
	_, from, err := a.hub.Content(c.Context(), home, info.ID)
	if err != nil {
		return err
	}
	defer from.Close()
	return w.Content(bundle.Content{
		ID: info.ID, Name: info.Name, Type: info.Type, Size: info.Size, SHA256: info.SHA256, By: info.By, CreatedAt: info.CreatedAt,
	}, from)
}
