package hub

import "context"

func (w *writing) endTasks() error { return nil }

func (h *Hub) loadOpenTasks(context.Context, *held) error { return nil }
