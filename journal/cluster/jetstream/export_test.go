package jetstream

// Older is older.
var Older = older
