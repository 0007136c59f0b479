import HTTPServer
import Testing
import Wire

@Suite("Targets, headers, routes and events")
struct HTTPTargetTests {
  static let paths: [(HTTPTarget, [String])] = [
    ("/", []), ("", []), ("/a", ["a"]), ("/a/", ["a"]), ("/a//", ["a", ""]),
    ("/a//b?x/y", ["a", "", "b"]), ("*", ["*"]), ("?a", []),
    ("http://host:80/a/b?c", ["a", "b"]), ("HTTP://host", []), ("https://h?q", []),
  ]

  @Test("a path is cut at its slashes, one trailing slash ignored", arguments: paths)
  func segments(target: HTTPTarget, expected: [String]) {
    #expect(target.pathSegments.map { String(decoding: $0.raw, as: UTF8.self) } == expected)
  }

  static let dots: [(HTTPTarget, Bool)] = [
    ("/a/..", true), ("/a/../", true), ("/./a", true), ("/%2e%2E/a?b", true), ("/a/%252e./b", true),
    ("/a/..;x/b", true), ("/a/b%5c..", true), ("/a/b%2F.%2Fc", true), ("/..", true),
    ("http://h/..", true), ("/a/...", false), ("/a..b/.c/d.", false), ("/a?x=/../", false),
    ("/a%zz/b", false), ("/", false), ("/%25252e%25252e", false), ("/a;..", false),
  ]

  @Test("a path that another URL layer would shorten is known", arguments: dots)
  func dotSegments(target: HTTPTarget, expected: Bool) async {
    #expect(target.hasDotSegment == expected)
    guard expected else { return }
    var router = HTTPRouter()
    router.on(.get, "/{a}/{b}") { _, _ in HTTPResponse(.ok) }
    let reply = await router.respond(to: HTTPRequest(method: .get, target: target))
    #expect(reply.status == .badRequest)
  }

  static let encodings: [(String, String?)] = [
    ("abc", "abc"), ("a%20b", "a b"), ("%24", "$"), ("a+b", "a+b"), ("%c3%A9", "é"), ("é", "é"),
    ("%", nil), ("%1", nil), ("%zz", nil), ("%ff", nil), ("a%00b", nil), ("%2525", "%25"),
  ]

  @Test("percent-encoding is decoded once, or not at all", arguments: encodings)
  func decoding(text: String, expected: String?) {
    #expect(PercentEncoding.decode(Array(text.utf8)) == expected)
  }

  @Test("query items are found whatever the case and encoding of their names")
  func query() {
    let target: HTTPTarget = "/x?ContinuationToken=a%3D%3D&direct&%24TOP=5&bad=%zz"
    #expect(target.queryItem("continuationtoken")?.value == "a==")
    #expect(target.queryItem("$top")?.value == "5")
    #expect(target.queryItem("direct")?.rawValue == nil)
    #expect(target.queryItem("bad")?.value == nil)
    #expect(target.queryItem("none") == nil)
    #expect(("/x" as HTTPTarget).rawQuery == nil)
  }

  @Test("no target, however odd, stops the parts that read it", arguments: 0..<20)
  func oddTargets(seed: UInt64) {
    // Made of what means something, so that it means it in the wrong places.
    let parts = [
      "/", "?", "&", "=", "%", "%2", "%24", "%zz", "+", "h", "http://", "*", "\u{FF}", "{",
    ]
    var state = seed &* 2_654_435_761 &+ 1
    for _ in 0..<500 {
      var text = ""
      for _ in 0..<12 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        text += parts[Int(state >> 33) % parts.count]
      }
      let target = HTTPTarget(text)
      for segment in target.pathSegments { _ = segment.decoded }
      for item in target.queryItems { _ = (item.name, item.value) }
      #expect(target.rawPath.count + (target.rawQuery?.count ?? 0) <= text.utf8.count)
      if case .found = Self.table.match("NONE", target) { Issue.record("found \(text)") }
    }
  }

  @Test("setting a header replaces all of its name")
  func headers() {
    var headers: HTTPHeaders = ["A": "1", "b": "2", "a": "3"]
    #expect(headers.values("A") == ["1", "3"])
    headers["a"] = "4"
    #expect(headers.map { "\($0.name)=\($0.value)" } == ["b=2", "a=4"])
    headers["B"] = nil
    #expect(headers.count == 1)
    #expect(headers.contains("A") && !headers.contains("b"))
  }

  static let table: HTTPRouteTable<String> = {
    var table = HTTPRouteTable<String>()
    table.add(.get, "/{hub+}/messages/{id}", "read")
    table.add(.post, "/{hub+}/messages", "send")
    table.add(.post, "/{hub+}/messages/$batch", "batch")
    table.add(.get, "/$health", "health")
    table.add(.head, "/own", "own")
    return table
  }()

  static let matches: [(HTTPMethod, HTTPTarget, String)] = [
    (.get, "/h/messages/7", "read h 7"), (.get, "/a/b%2Fc/MESSAGES/x%20y/", "read a/b/c x y"),
    (.post, "/h/messages/", "send h -"), (.post, "/h/messages/%24batch?direct", "batch h -"),
    (.get, "/$HEALTH", "health - -"), (.head, "/$health", "health - -"), (.head, "/own", "own - -"),
    (.put, "/h/messages", "405 POST"), (.post, "/h/messages/7", "405 GET"),
    (.put, "/h/messages/$batch", "405 GET,POST"), (.get, "/own", "405 HEAD"),
    (.get, "/messages/7", "404"), (.get, "/h//messages/7", "404"), (.get, "/", "404"),
    (.post, "//messages", "404"), (.get, "/h/messages/7/8", "404"),
    (.get, "/h/messages/%zz", "read h -"),
  ]

  @Test("a route is found by method and path", arguments: matches)
  func routes(method: HTTPMethod, target: HTTPTarget, expected: String) {
    let found =
      switch Self.table.match(method, target) {
      case .found(let value, let parameters):
        "\(value) \(parameters["hub"] ?? "-") \(parameters["id"] ?? "-")"
      case .methodNotAllowed(let allowed):
        "405 \(allowed.map(\.rawValue).joined(separator: ","))"
      case .notFound: "404"
      }
    #expect(found == expected)
  }

  @Test("a router words its refusals through one closure and names the allowed methods")
  func router() async {
    var router = HTTPRouter { status, request in
      HTTPResponse(status, text: "\(status.rawValue) \(request.target)")
    }
    router.on(.get, "/v1/devices/{id}") { _, parameters in
      HTTPResponse(.ok, text: parameters["id"] ?? "")
    }
    router.on(.delete, "/v1/devices/{id}") { _, _ in HTTPResponse(.noContent) }
    let found = await router.respond(to: HTTPRequest(method: .get, target: "/v1/devices/a%2Fb"))
    #expect(found.status == .ok)
    let wrong = await router.respond(to: HTTPRequest(method: .put, target: "/v1/devices/1"))
    #expect(wrong.status == .methodNotAllowed)
    #expect(wrong.headers["allow"] == "GET, DELETE")
    let missing = await router.respond(to: HTTPRequest(method: .get, target: "/v2"))
    #expect(missing.status == .notFound)
  }

  static let events: [(ServerSentEvent, String)] = [
    (.init(data: ""), "data: \n\n"), (.init(data: "a"), "data: a\n\n"),
    (
      .init(event: "e", id: "7", data: "a\nb\r\nc\rd"),
      "event: e\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\n\n"
    ),
    (.init(event: "e\ndata: x", id: "1\r\n2", data: "a"), "event: e\nid: 1\ndata: a\n\n"),
  ]

  @Test("an event cannot break out of its lines", arguments: events)
  func eventBytes(event: ServerSentEvent, expected: String) {
    #expect(String(decoding: event.bytes, as: UTF8.self) == expected)
  }
}
