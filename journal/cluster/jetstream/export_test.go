package jetstream

// Older is older.
var Older = older

// Subscriptions counts what the connection is subscribed to.
func (l *Log) Subscriptions() int { return l.nc.NumSubscriptions() }
