package agh

import "github.com/parley-hub/parley/dialect/agh/wire"

// catalog is what a hosted peer can do.
func (p *peer) catalog() []wire.CapabilityDoc { return nil }
