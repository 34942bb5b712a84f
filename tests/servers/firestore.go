package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// emulatorJar is the path of Google's emulator in its Debian package.
const emulatorJar = "/usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"

// javaLimit is the maximum time until the emulator answers. Java starts slowly on a busy
// machine.
const javaLimit = 3 * time.Minute

// firestoreJar returns the path of Google's emulator, or "" if it is not installed.
func firestoreJar() string {
	places := []string{os.Getenv("FIRESTORE_EMULATOR_JAR"), emulatorJar}
	if gcloud, err := exec.LookPath("gcloud"); err == nil {
		if gcloud, err = filepath.EvalSymlinks(gcloud); err == nil {
			places = append(places, filepath.Join(filepath.Dir(gcloud), "../platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"))
		}
	}
	for _, place := range places {
		if _, err := os.Stat(place); place != "" && err == nil {
			return place
		}
	}
	return ""
}

// StartFirestore starts Google's emulator of Firestore until the test ends, and returns its
// address. It keeps its data in memory, and enforces neither indexes nor lifetimes.
func StartFirestore(t TB) (address string) {
	t.Helper()
	jar := firestoreJar()
	if jar == "" {
		t.Skip("Google's emulator of Firestore is not installed: apt-get install google-cloud-cli-firestore-emulator, or FIRESTORE_EMULATOR_JAR")
	}
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("Google's emulator of Firestore needs Java: apt-get install default-jre-headless")
	}
	port := Ports(t, 1)[0]
	// Java spends most of a short run on its optimizing compiler, and some on collecting garbage in threads.
	cmd := exec.Command(java, "-Xmx2g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.language=en", "-cp", jar, "com.google.cloud.datastore.emulator.firestore.CloudFirestore",
		"--host=127.0.0.1", fmt.Sprint("--port=", port))
	cmd.SysProcAttr = endsWithTest()
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ended
		_ = cmd.Wait()         // killed
	})
	address = fmt.Sprintf("127.0.0.1:%d", port)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer owner"), javaLimit)
	defer cancel()
	// The first requests load a large part of the emulator. On a busy machine this takes longer
	// than the timeouts of clients.
	const database = "projects/ready/databases/(default)"
	client, first := firestorepb.NewFirestoreClient(conn), &firestorepb.Document{Name: database + "/documents/ready/first"}
	write := &firestorepb.Write{Operation: &firestorepb.Write_Update{Update: first}}
	for _, writes := range [][]*firestorepb.Write{nil, {write}, {write}} {
		if err == nil {
			_, err = client.Commit(ctx, &firestorepb.CommitRequest{Database: database, Writes: writes}, grpc.WaitForReady(true))
		}
	}
	if err == nil {
		_, err = client.ListDocuments(ctx, &firestorepb.ListDocumentsRequest{Parent: database + "/documents", CollectionId: "ready"})
	}
	if err != nil {
		_, _ = cmd.Process.Kill(), cmd.Wait() // so that its output is complete
		t.Fatal("Google's emulator of Firestore does not answer: ", err, said.String())
	}
	return address
}
