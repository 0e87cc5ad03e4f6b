package hpd

import (
	"context"
	"iter"
	"net/http"
	"strings"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// postFork creates a branch with the messages of another, up to one of them.
func (s *Server) postFork(c *call) error {
	var in wire.ForkBranch
	if err := c.read(&in); err != nil {
		return err
	}
	if strings.TrimSpace(deref(in.FromMessageID)) == "" {
		return fault.New(fault.Invalid, "`fromMessageId` is missing; say after which message to fork")
	}
	id := givenID(in.NewBranchID)
	if id == "" {
		id = newID()
	} else if err := checkBranchID(id); err != nil {
		return err
	}
	fields, err := s.fieldsOf(in.Name, in.Description, in.Tags, in.Metadata)
	if err != nil {
		return err
	}
	at, err := s.scope(c)
	if err != nil {
		return err
	}
	// A fork that was begun is finished, even if the client disconnects.
	ctx := context.WithoutCancel(c.Context())
	creator, err := s.actor(ctx, c.who)
	if err != nil {
		return err
	}
	unlock := s.locks.lock("tree/" + at.session.home)
	err = s.fork(ctx, c, at, creator, id, *in.FromMessageID, fields)
	unlock()
	if err != nil {
		return err
	}
	s.condenseSoon(at) // the log may be older than condensing, or its run active
	s.touch(ctx, at.session)
	return s.answerBranch(c, at.session, id)
}

// fork writes the whole new branch, and then updates the tree. The caller
// holds the lock of the session's tree.
func (s *Server) fork(ctx context.Context, c *call, at *scope, creator, id, messageID string, fields branch.Fields) error {
	all, err := s.summaries(ctx, at.session)
	if err != nil {
		return err
	}
	history, err := s.projection(ctx, at)
	if err != nil {
		return err
	}
	messages, index, ok := history.Through(messageID)
	if !ok {
		return c.refuse(http.StatusBadRequest, wire.ForkMessageNotPresent, "Message '"+messageID+"' is not part of branch '"+at.branch+"'.")
	}
	point := branch.ForkPoint{Source: at.branch, MessageID: messageID, MessageIndex: int64(index)}
	tree := append(nodes(all), branch.Node{ID: id, Fork: point, Order: int64(len(all))})
	place := branch.Places(tree)[id]
	seed := forkEvents(creator, fields, point, place, messages, history.State)
	opened, err := s.hub.Seed(ctx, opening(at.session, c.who, creator, id), seed)
	if fault.CodeOf(err) == fault.Conflict {
		return c.refuse(http.StatusConflict, wire.ForkBranchError, "Branch '"+id+"' exists.")
	}
	if err != nil {
		return err
	}
	all = append(all, adapter.Summary{Channel: opened.ID, Session: at.session.id, Branch: id, Fork: point, Told: place.Sum()})
	return s.tellTree(ctx, at.session, all)
}

// forkEvents returns the history of a fork: its beginning, its messages under their
// existing ids, and the branch's state.
func forkEvents(
	creator string, f branch.Fields, point branch.ForkPoint, place branch.Place, messages []wire.ChatMessage, state map[string]string,
) iter.Seq2[*envelope.Envelope, error] {
	return func(yield func(*envelope.Envelope, error) bool) {
		first := []wire.Payload{
			wire.BranchForked{
				SourceBranchID: point.Source, FromMessageID: point.MessageID, ResolvedMessageIndex: point.MessageIndex, Ancestors: place.Ancestors,
			},
			updated(f), wire.TreeUpdated(place),
		}
		for _, p := range first {
			if e, err := made("", creator, "", p, branch.Ext{}); !yield(e, err) || err != nil {
				return
			}
		}
		for i := range messages {
			list, err := committed("", creator, "", &messages[i])
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
		}
		if len(state) > 0 {
			e, err := made("", creator, "", wire.BranchMiddlewareStateCommitted{State: state}, branch.Ext{})
			yield(e, err)
		}
	}
}
