// What Go's net/http costs: 404 to every request.
package main

import (
	"log"
	"net/http"
	"os"
)

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.NotFoundHandler()))
}
