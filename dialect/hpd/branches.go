package hpd

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// branchBody returns the JSON body of a branch.
func branchBody(b adapter.Summary, place branch.Place) (wire.Branch, error) {
	out := wire.Branch{
		ID: b.Branch, SessionID: b.Session, Description: b.Fields.Description, Tags: b.Fields.Tags,
		Name:      wire.DisplayName(b.Fields.Name, b.Fields.Description, b.FirstText, b.Branch),
		CreatedAt: b.Created.UTC(), LastActivity: b.Active.UTC(), MessageCount: b.Messages,
	}
	if len(b.Fields.Metadata) > 0 {
		if err := json.Unmarshal(b.Fields.Metadata, &out.Metadata); err != nil {
			return out, fault.Wrap(fault.Internal, err, "the metadata of branch %q cannot be read: %v", b.Branch, err)
		}
	}
	out.SetPlace(place)
	return out, nil
}

// bodies returns the bodies of the wanted branches of a session, or of all, in
// their order.
func bodies(all []adapter.Summary, wanted func(*adapter.Summary) bool) ([]wire.Branch, error) {
	places := branch.Places(nodes(all))
	list := []wire.Branch{}
	for i := range all {
		if wanted != nil && !wanted(&all[i]) {
			continue
		}
		body, err := branchBody(all[i], places[all[i].Branch])
		if err != nil {
			return nil, err
		}
		list = append(list, body)
	}
	return list, nil
}

// list returns the wanted branches of a session, or all, with their index entries.
func (s *Server) list(ctx context.Context, x session, wanted func(*adapter.Summary) bool) ([]adapter.Summary, []wire.Branch, error) {
	all, err := s.summaries(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	found, err := bodies(all, wanted)
	return all, found, err
}

// branchOf returns one branch's body. It reads all branches of the session.
func (s *Server) branchOf(ctx context.Context, x *scope) (wire.Branch, error) {
	_, list, err := s.list(ctx, x.session, func(b *adapter.Summary) bool { return b.Channel == x.channel })
	if err != nil {
		return wire.Branch{}, err
	}
	if len(list) == 0 {
		return wire.Branch{}, errNoBranch(x.branch, x.session.id)
	}
	return list[0], nil
}

func (s *Server) listBranches(c *call) error {
	x, err := s.session(c)
	if err != nil {
		return err
	}
	_, list, err := s.list(c.Context(), x, nil)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, list)
}

// channelHeader names the hub's channel of a branch, by which /v1 identifies the
// branch.
const channelHeader = "Parley-Channel"

func (s *Server) getBranch(c *call, x *scope) error {
	body, err := s.branchOf(c.Context(), x)
	if err != nil {
		return err
	}
	c.w.Header().Set(channelHeader, x.channel)
	return c.write(http.StatusOK, body)
}

// parentOf returns the branch on whose streams a sub-agent's branch is shown, or
// nil.
func parentOf(metadata branch.Raw) *wire.Scope {
	var m struct {
		Kind    string `json:"kind"`
		Session string `json:"parentSessionId"`
		Branch  string `json:"parentBranchId"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil || m.Kind != "subagent" || m.Session == "" || m.Branch == "" {
		return nil
	}
	return &wire.Scope{Session: m.Session, Branch: m.Branch}
}

// fieldsOf returns the checked fields of a body.
func (s *Server) fieldsOf(name, description *string, tags []string, metadata map[string]wire.Raw) (branch.Fields, error) {
	f := branch.Fields{Name: name, Description: description, Tags: tags}
	if merged := wire.MergeMetadata(nil, metadata); len(merged) > 0 {
		data, err := marshal(merged)
		if err != nil {
			return f, err
		}
		f.Metadata = data
	}
	data, err := marshal(f)
	if limit := s.cfg.Limits.Record; err == nil && len(data) > limit-256 {
		err = fault.New(fault.TooLarge, "name, description, tags and metadata have %d bytes together; at most %d are kept (limits.record)", len(data), limit-256)
	}
	return f, err
}

// openBranch creates a branch that is not a fork, with its first events and, for
// the branch main, its session, in one batch. A name that is taken is a conflict.
func (s *Server) openBranch(c *call, x session, creator, id string, f branch.Fields, metadata wire.Raw) (channelID string, err error) {
	first, err := made("", creator, "", wire.BranchCreated{
		Name: f.Name, Description: f.Description, Tags: f.Tags, BranchMetadata: f.Metadata, CreatedAt: s.now(),
	}, branch.Ext{Opens: true, Session: metadata})
	if err != nil {
		return "", err
	}
	opened, _, err := s.hub.AdmitOpening(c.Context(), opening(x, c.who, creator, id), first)
	if err != nil {
		return "", err
	}
	return opened.ID, nil
}

func updated(f branch.Fields) wire.BranchMetadataUpdated {
	return wire.BranchMetadataUpdated{Name: f.Name, Description: f.Description, Tags: f.Tags, BranchMetadata: f.Metadata}
}

func (s *Server) createBranch(c *call) error {
	var in wire.CreateBranch
	if err := c.read(&in); err != nil {
		return err
	}
	id := givenID(in.BranchID)
	if id == "" {
		id = newID()
	} else if err := checkBranchID(id); err != nil {
		return err
	}
	if strings.TrimSpace(deref(in.Name)) == "" {
		in.Name = &id
	}
	fields, err := s.fieldsOf(in.Name, in.Description, in.Tags, in.Metadata)
	if err != nil {
		return err
	}
	x, err := s.session(c)
	if err != nil {
		return err
	}
	ctx := c.Context()
	creator, err := s.actor(ctx, c.who)
	if err != nil {
		return err
	}
	_, err = s.openBranch(c, x, creator, id, fields, nil)
	if fault.CodeOf(err) == fault.Conflict {
		return c.refuse(http.StatusConflict, wire.CreateBranchError, "Branch '"+id+"' exists.")
	}
	if err != nil {
		return err
	}
	s.touch(ctx, x)
	return s.answerBranch(c, x, id)
}

// answerBranch writes a branch that was created as the response.
func (s *Server) answerBranch(c *call, x session, id string) error {
	b, err := s.branch(c.Context(), x, id)
	if err != nil {
		return err
	}
	body, err := s.branchOf(c.Context(), b)
	if err != nil {
		return err
	}
	s.location(c, "sessions", x.id, c.surface.Segment(), id)
	return c.write(http.StatusCreated, body)
}

func (s *Server) updateBranch(c *call) error {
	var in wire.UpdateBranch
	if err := c.read(&in); err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	ctx := c.Context()
	sender, err := s.actor(ctx, c.who)
	if err != nil {
		return err
	}
	unlock := s.locks.lock(x.channel)
	defer unlock()
	if x.state, err = s.state(ctx, x.channel); err != nil {
		return err
	}
	now := x.state.Fields
	var metadata map[string]wire.Raw
	if len(now.Metadata) > 0 {
		if err := json.Unmarshal(now.Metadata, &metadata); err != nil {
			return fault.Wrap(fault.Internal, err, "the metadata of branch %q cannot be read: %v", x.branch, err)
		}
	}
	if in.Name == nil {
		in.Name = now.Name
	}
	if in.Description == nil {
		in.Description = now.Description
	}
	if in.Tags == nil {
		in.Tags = now.Tags
	}
	fields, err := s.fieldsOf(in.Name, in.Description, in.Tags, wire.MergeMetadata(metadata, in.Metadata))
	if err != nil {
		return err
	}
	if err := s.append(ctx, x.channel, sender, updated(fields)); err != nil {
		return err
	}
	s.touch(ctx, x.session)
	body, err := s.branchOf(ctx, x)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, body)
}
