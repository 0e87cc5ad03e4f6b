package jetstream

// Older exports older.
var Older = older

// Subscriptions returns the number of subscriptions of the connection.
func (l *Log) Subscriptions() int { return l.nc.NumSubscriptions() }
