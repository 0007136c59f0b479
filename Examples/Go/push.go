// Registers a device, sends to its tag, and waits for what became of it. Go 1.19 or newer, nothing else.
//
//	BELFRY_CONNECTION_STRING='Endpoint=sb://…' BELFRY_HUB=shop go run push.go 'Hello'
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"time"
)

type hub struct{ url, keyName, key string }

func newHub(connectionString, name string) hub {
	fields := map[string]string{}
	for _, part := range strings.Split(connectionString, ";") {
		if key, value, found := strings.Cut(part, "="); found {
			fields[key] = value
		}
	}
	host := strings.TrimSuffix(strings.TrimPrefix(fields["Endpoint"], "sb://"), "/")
	// `sb` is HTTPS; on this machine Belfry also speaks plain HTTP.
	scheme := "https"
	if bare, _, _ := strings.Cut(host, ":"); bare == "127.0.0.1" || bare == "localhost" {
		scheme = "http"
	}
	return hub{scheme + "://" + host + "/" + name, fields["SharedAccessKeyName"], fields["SharedAccessKey"]}
}

// token is a shared access signature for the whole hub, good for an hour.
func (h hub) token() string {
	resource := url.QueryEscape(h.url)
	expiry := time.Now().Unix() + 3600
	mac := hmac.New(sha256.New, []byte(h.key))
	fmt.Fprintf(mac, "%s\n%d", resource, expiry)
	signature := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s", resource, signature, expiry, h.keyName)
}

func (h hub) call(method, place string, headers map[string]string, body any) (http.Header, string, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, "", err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, h.url+"/"+place+"?api-version=2020-06", content)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Authorization", h.token())
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s %s", method, place, reply.Status, text)
	}
	return reply.Header, string(text), err
}

// send fills in everybody's template, and gives the id of the notification.
func (h hub) send(properties map[string]string, tags string) (string, error) {
	headers, _, err := h.call("POST", "messages", map[string]string{
		"ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": tags}, properties)
	if err != nil {
		return "", err
	}
	location, err := url.Parse(headers.Get("Location"))
	if err != nil {
		return "", err
	}
	return path.Base(location.Path), nil
}

var stateElement = regexp.MustCompile("<State>([^<]*)</State>")
var outcomeElement = regexp.MustCompile("<Name>([^<]*)</Name><Count>([0-9]*)</Count>")

func (h hub) state(notification string) (string, map[string]string, error) {
	_, document, err := h.call("GET", "messages/"+notification, nil, nil)
	if err != nil {
		return "", nil, err
	}
	found := stateElement.FindStringSubmatch(document)
	if found == nil {
		return "", nil, fmt.Errorf("no state in %s", document)
	}
	counts := map[string]string{}
	for _, match := range outcomeElement.FindAllStringSubmatch(document, -1) {
		counts[match[1]] = match[2]
	}
	return found[1], counts, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run push.go MESSAGE")
	}
	token := os.Getenv("DEVICE_TOKEN")
	if token == "" {
		token = strings.Repeat("00", 32)
	}
	h := newHub(os.Getenv("BELFRY_CONNECTION_STRING"), os.Getenv("BELFRY_HUB"))
	_, _, err := h.call("PUT", "installations/go-sample", nil, map[string]any{
		"platform": "apns", "pushChannel": token, "tags": []string{"sample:go"},
		"templates": map[string]any{"main": map[string]string{"body": `{"aps":{"alert":"$(message)"}}`}},
	})
	if err != nil {
		log.Fatal(err)
	}
	notification, err := h.send(map[string]string{"message": os.Args[1]}, "sample:go")
	if err != nil {
		log.Fatal(err)
	}
	for {
		state, outcomes, err := h.state(notification)
		if err != nil {
			log.Fatal(err)
		}
		if state != "Enqueued" && state != "Processing" {
			json.NewEncoder(os.Stdout).Encode(map[string]any{
				"notification": notification, "state": state, "outcomes": outcomes})
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}
