// Go's net/http as a sender of pushes: one client, HTTP/2 by its own rules, so many goroutines as
// there are streams. What sideshow/apns2 and others stand on.
//
// usage: gosender HOST PORT COUNT STREAMS   (prints how many replies were 200)
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const body = `{"aps":{"alert":"Hello from Postman!"}}`

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: gosender HOST PORT COUNT STREAMS")
		os.Exit(64)
	}
	count, _ := strconv.ParseInt(os.Args[3], 10, 64)
	streams, _ := strconv.Atoi(os.Args[4])
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var bearer strings.Builder
	bearer.WriteString("bearer ")
	for i := 0; i < 183; i++ {
		bearer.WriteByte(letters[rand.Intn(64)])
	}
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		MaxConnsPerHost:   1,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}}
	var next, accepted atomic.Int64
	send := func() bool {
		if next.Add(1) > count {
			return false
		}
		url := fmt.Sprintf("https://%s:%s/3/device/%016x%016x%016x%016x", os.Args[1], os.Args[2],
			rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64())
		request, _ := http.NewRequest("POST", url, strings.NewReader(body))
		request.Header.Set("authorization", bearer.String())
		request.Header.Set("apns-topic", "com.example.app")
		request.Header.Set("apns-push-type", "alert")
		request.Header.Set("apns-priority", "10")
		request.Header.Set("apns-expiration", "0")
		response, err := client.Do(request)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode == 200 && response.ProtoMajor == 2 {
			accepted.Add(1)
		}
		return true
	}
	send() // the connection is there before the others start
	var group sync.WaitGroup
	for i := 0; i < streams; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for send() {
			}
		}()
	}
	group.Wait()
	fmt.Println(accepted.Load())
	if accepted.Load() != count {
		os.Exit(1)
	}
}
