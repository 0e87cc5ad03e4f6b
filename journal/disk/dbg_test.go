package disk_test
import ("log/slog";"os")
func init(){ dbgLogger = slog.New(slog.NewTextHandler(os.Stderr,&slog.HandlerOptions{Level:slog.LevelInfo})) }
