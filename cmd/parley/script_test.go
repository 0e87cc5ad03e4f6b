package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// startTimeout is patient: the machine may be busy with other tests.
const startTimeout = 60 * time.Second

// scriptCommands are what scripts have beside testscript's own.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"serve":       cmdServe,
	"halt":        cmdHalt,
	"get":         cmdGet,
	"keep":        cmdKeep,
	"certificate": cmdCertificate,
	"occupy":      cmdOccupy,
	"damage":      cmdDamage,
}

// process is a hub that a script has started.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan error
}

var running struct {
	sync.Mutex
	byWork map[string]map[string]*process
}

// cmdServe starts `parley serve` and waits until it has printed where it
// listens:
//
//	serve NAME [FLAG...]    sets NAME_URL and NAME_PID
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME [FLAG...]")
	}
	binary, err := exec.LookPath("parley")
	if found := lookPath(ts.Getenv("PATH"), "parley"); found != "" {
		binary, err = found, nil
	}
	ts.Check(err)
	name := args[0]
	p := &process{done: make(chan error, 1)}
	p.cmd = exec.Command(binary, append([]string{"serve", "-o", "json"}, args[1:]...)...) // stopAll ends it
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"), "PARLEY_TOKEN=" + ts.Getenv("PARLEY_TOKEN"), "ANTHROPIC_API_KEY=" + ts.Getenv("ANTHROPIC_API_KEY")}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())

	line := make(chan []byte, 1)
	go func() {
		raw, _ := io.ReadAll(&lineReader{r: stdout})
		line <- raw
		_, _ = io.Copy(io.Discard, stdout)
		p.done <- p.cmd.Wait()
	}()
	running.Lock()
	if running.byWork == nil {
		running.byWork = map[string]map[string]*process{}
	}
	work := ts.Getenv("WORK")
	if running.byWork[work] == nil {
		running.byWork[work] = map[string]*process{}
	}
	running.byWork[work][name] = p
	running.Unlock()

	var said started
	select {
	case raw := <-line:
		if err := json.Unmarshal(raw, &said); err != nil {
			ts.Fatalf("serve printed %q (%v), and on stderr: %s", raw, err, p.stderr.String())
		}
	case <-time.After(startTimeout):
		ts.Fatalf("serve said nothing for %v", startTimeout)
	}
	ts.Setenv(name+"_URL", said.URL)
	ts.Setenv(name+"_PID", strconv.Itoa(p.cmd.Process.Pid))
}

// lineReader ends after the first line.
type lineReader struct {
	r    io.Reader
	done bool
}

func (l *lineReader) Read(b []byte) (int, error) {
	if l.done || len(b) == 0 {
		return 0, io.EOF
	}
	n, err := l.r.Read(b[:1])
	if n == 1 && b[0] == '\n' {
		l.done = true
	}
	return n, err
}

func lookPath(path, name string) string {
	for dir := range strings.SplitSeq(path, string(os.PathListSeparator)) {
		if info, err := os.Stat(dir + "/" + name); err == nil && !info.IsDir() {
			return dir + "/" + name
		}
	}
	return ""
}

// cmdHalt ends a hub and leaves its log in NAME.log:
//
//	halt NAME [KILL]    with SIGTERM and exit code 0, or with SIGKILL
func cmdHalt(ts *testscript.TestScript, _ bool, args []string) {
	running.Lock()
	p := running.byWork[ts.Getenv("WORK")][args[0]]
	delete(running.byWork[ts.Getenv("WORK")], args[0])
	running.Unlock()
	if p == nil {
		ts.Fatalf("there is no hub %s", args[0])
	}
	signal := syscall.SIGTERM
	if len(args) > 1 {
		signal = syscall.SIGKILL
	}
	ts.Check(p.cmd.Process.Signal(signal))
	err := <-p.done
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".log"), p.stderr.Bytes(), 0o600))
	if signal == syscall.SIGTERM && err != nil {
		ts.Fatalf("the hub ended with %v: %s", err, p.stderr.String())
	}
}

// stopAll kills what a script has left running.
func stopAll(work string) func() {
	return func() {
		running.Lock()
		defer running.Unlock()
		for _, p := range running.byWork[work] {
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		delete(running.byWork, work)
	}
}

// cmdGet asks for a page and prints its body:
//
//	get STATUS URL [HEADER VALUE]...
func cmdGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: get STATUS URL [HEADER VALUE]...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[1], nil)
	ts.Check(err)
	for i := 2; i+1 < len(args); i += 2 {
		if args[i] == "Host" {
			request.Host = args[i+1]
		}
		request.Header.Set(args[i], args[i+1])
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // a script's own certificate
	}}
	answer, err := client.Do(request)
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o600))
	if strconv.Itoa(answer.StatusCode) != args[0] {
		ts.Fatalf("status %s, want %s: %s", answer.Status, args[0], body)
	}
}

// cmdKeep sets a variable to a field of a JSON file:
//
//	keep NAME FILE FIELD    FILE may be stdout
func cmdKeep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: keep NAME FILE FIELD")
	}
	var data map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &data))
	value, ok := data[args[2]]
	if !ok {
		ts.Fatalf("%s has no %s", args[1], args[2])
	}
	ts.Setenv(args[0], fmt.Sprint(value))
}

// cmdCertificate writes a new certificate and its key:
//
//	certificate CERT KEY
func cmdCertificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certificate CERT KEY")
	}
	ts.Check(writeCertificate(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

// writeCertificate writes a certificate for localhost that nobody else signed.
func writeCertificate(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return errors.Join(
		err,
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}

// cmdOccupy takes a port for the rest of the script:
//
//	occupy NAME    sets NAME to its address
func cmdOccupy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: occupy NAME")
	}
	taken, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = taken.Close() })
	ts.Setenv(args[0], taken.Addr().String())
}

// cmdDamage flips a bit in the middle of a file:
//
//	damage FILE
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage FILE")
	}
	raw := []byte(ts.ReadFile(args[0]))
	raw[len(raw)/2] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), raw, 0o600))
}
