package hpd

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// contentName returns a content's name in the hub. It begins with the branch id,
// which has no colon.
func contentName(branchID, name string) string { return branchID + ":" + name }

func contentBody(info hub.ContentInfo) (branchID string, body wire.ContentInfo) {
	branchID, name, _ := strings.Cut(info.Name, ":")
	body = wire.ContentInfo{ContentID: info.ID, Version: "1", ContentType: info.Type, SizeBytes: info.Size, CreatedAt: info.CreatedAt.UTC()}
	if name != "" {
		body.Name = &name
	}
	return branchID, body
}

func (s *Server) postContent(c *call, x *scope) error {
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return c.refuse(http.StatusBadRequest, wire.InvalidContentType, "An upload is multipart/form-data with the field `file`.")
	}
	part, err := filePart(multipart.NewReader(c.Body, params["boundary"]))
	if err != nil {
		return err
	}
	if part == nil {
		return c.refuse(http.StatusBadRequest, wire.NoFileProvided, "The form has no field `file`.")
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(part, first); err != nil {
		return c.refuse(http.StatusBadRequest, wire.NoFileProvided, "The file is empty.")
	}
	by, err := s.actor(c.Context(), c.who)
	if err != nil {
		return err
	}
	info := hub.ContentInfo{Name: contentName(x.branch, part.FileName()), Type: wire.DefaultContentType, By: by}
	if given := part.Header.Get("Content-Type"); given != "" {
		info.Type = given
	}
	stored, err := s.hub.PutContent(c.Context(), x.session.home, info, io.MultiReader(strings.NewReader(string(first)), part))
	if err != nil {
		return uploadError(err)
	}
	_, body := contentBody(stored)
	s.location(c, "sessions", x.session.id, c.surface.Segment(), x.branch, "content", stored.ID)
	return c.write(http.StatusCreated, body)
}

func uploadError(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.New(fault.TooLarge, "the upload is over %d bytes (limits.content)", tooLarge.Limit)
	}
	return err
}

// filePart returns the field `file` of a form, or nil if there is none.
func filePart(form *multipart.Reader) (*multipart.Part, error) {
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, uploadError(err), "the form cannot be read: %v", err)
		}
		if part.FormName() == "file" {
			return part, nil
		}
	}
}

func (s *Server) listContent(c *call, x *scope) error {
	list := []wire.ContentInfo{}
	page := hub.ContentPage{Limit: 1000}
	for {
		found, next, err := s.hub.Contents(c.Context(), x.session.home, page)
		if err != nil {
			return err
		}
		for _, info := range found {
			if branchID, body := contentBody(info); branchID == x.branch {
				list = append(list, body)
			}
		}
		if next == "" {
			return c.write(http.StatusOK, list)
		}
		page.After = next
	}
}

// active reports whether a browser would run content of a type.
func active(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return true
	}
	passive := strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" || strings.HasPrefix(kind, "audio/") ||
		strings.HasPrefix(kind, "video/") || kind == "text/plain" || kind == "application/pdf" || kind == "application/json"
	return !passive
}

func (s *Server) getContent(c *call, x *scope) error {
	info, data, err := s.hub.Content(c.Context(), x.session.home, c.item)
	if err != nil {
		return errNoContent(err, c.item)
	}
	defer data.Close()
	_, body := contentBody(info)
	disposition := "inline"
	if active(info.Type) {
		disposition = "attachment"
	}
	if body.Name != nil {
		if text := mime.FormatMediaType(disposition, map[string]string{"filename": *body.Name}); text != "" {
			disposition = text
		}
	}
	h := c.w.Header()
	h.Set("Content-Type", info.Type)
	h.Set("Content-Disposition", disposition)
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(c.answer.Paced(c.Request, c.w, s.cfg.Limits.Write), c.Request, "", info.CreatedAt, data)
	return nil
}

func errNoContent(err error, id string) error {
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Invalid {
		return fault.New(fault.NotFound, "Content '%.100s' was not found.", id)
	}
	return err
}

func (s *Server) deleteContent(c *call, x *scope) error {
	by, err := s.actor(c.Context(), c.who)
	if err != nil {
		return err
	}
	if err := s.hub.DropContent(c.Context(), x.session.home, c.item, caller(c.who, by)); err != nil {
		return errNoContent(err, c.item)
	}
	return c.empty(http.StatusNoContent)
}
