/// A handler made of a route table: 404 for unknown paths, 405 with `Allow` for unknown methods.
package struct HTTPRouter: HTTPHandler {
  /// Answers a request whose path fitted a pattern.
  package typealias Action = @Sendable (HTTPRequest, HTTPPathParameters) async -> HTTPResponse

  private var table = HTTPRouteTable<Action>()
  private let refuse: @Sendable (HTTPStatus, HTTPRequest) -> HTTPResponse

  /// - Parameter refuse: Words every refusal (400 for a path with `.` or `..`, 404, 405, and those
  ///   of `HTTPHandler.reject`); `Allow` is added to its 405.
  package init(
    refuse: @escaping @Sendable (HTTPStatus, HTTPRequest) -> HTTPResponse = { status, _ in
      HTTPResponse(status)
    }
  ) {
    self.refuse = refuse
  }

  /// Adds a route; patterns as in `HTTPRouteTable`.
  package mutating func on(
    _ method: HTTPMethod, _ pattern: String, action: @escaping Action
  ) {
    table.add(method, pattern, action)
  }

  /// The registered routes.
  package var patterns: [(method: HTTPMethod, pattern: String)] {
    table.patterns.map { ($0.method, $0.pattern) }
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    if request.target.hasDotSegment { return refuse(.badRequest, request) }
    switch table.match(request.method, request.target) {
    case .found(let action, let parameters):
      return await action(request, parameters)
    case .methodNotAllowed(let allowed):
      var response = refuse(.methodNotAllowed, request)
      response.headers["Allow"] = allowed.map(\.rawValue).joined(separator: ", ")
      return response
    case .notFound:
      return refuse(.notFound, request)
    }
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    refuse(status, request)
  }
}

/// Which value (a handler, an operation) stands for a method and a path.
///
/// A pattern is a path of segments: a fixed word, compared without regard to case; `{name}` for one
/// segment; as first segment `{name+}` for the one or more that the rest of the pattern leaves.
/// Where several patterns fit, the one added first wins.
package struct HTTPRouteTable<Value: Sendable>: Sendable {
  /// What a table says about a request.
  package enum Match: Sendable {
    case found(Value, HTTPPathParameters)
    /// The path is known, not with this method; the methods it is known with, for `Allow`.
    case methodNotAllowed([HTTPMethod])
    case notFound
  }

  private struct Route: Sendable {
    let method: HTTPMethod
    let pattern: HTTPPathPattern
    let value: Value
  }

  private var routes: [Route] = []

  package init() {}

  /// The registered routes, in the order in which they are tried.
  package var patterns: [(method: HTTPMethod, pattern: String, value: Value)] {
    routes.map { ($0.method, $0.pattern.text, $0.value) }
  }

  /// Adds a route; `pattern` is a constant of the program, such as `/v1/devices/{id}`.
  package mutating func add(_ method: HTTPMethod, _ pattern: String, _ value: Value) {
    routes.append(Route(method: method, pattern: HTTPPathPattern(pattern), value: value))
  }

  /// Looks a request up.
  ///
  /// - Parameter servesHead: HEAD is served by the route of GET unless it has its own; otherwise it
  ///   is a method like any other.
  package func match(
    _ method: HTTPMethod, _ target: HTTPTarget, servesHead: Bool = true
  ) -> Match {
    let segments = target.pathSegments
    if let found = route(method, segments) { return found }
    if servesHead, method == .head, let found = route(.get, segments) { return found }
    var allowed: [HTTPMethod] = []
    for route in routes
    where !allowed.contains(route.method) && route.pattern.match(segments) != nil {
      allowed.append(route.method)
    }
    return allowed.isEmpty ? .notFound : .methodNotAllowed(allowed)
  }

  private func route(_ method: HTTPMethod, _ segments: [HTTPPathSegment]) -> Match? {
    for route in routes where route.method == method {
      if let parameters = route.pattern.match(segments) { return .found(route.value, parameters) }
    }
    return nil
  }
}

/// The parts of a path that a pattern's `{name}`s stand for, by name.
package struct HTTPPathParameters: Sendable {
  private var values: [(name: String, segments: ArraySlice<HTTPPathSegment>)] = []

  init() {}

  mutating func add(_ name: String, _ segments: ArraySlice<HTTPPathSegment>) {
    values.append((name, segments))
  }

  /// The text a name stands for, each segment decoded once, several joined with `/`; `nil` if the
  /// pattern has no such name or the encoding is broken.
  package subscript(name: String) -> String? {
    guard let segments = values.first(where: { $0.name == name })?.segments else { return nil }
    if segments.count == 1 { return segments.first?.decoded }
    var parts: [String] = []
    for segment in segments {
      guard let decoded = segment.decoded else { return nil }
      parts.append(decoded)
    }
    return parts.joined(separator: "/")
  }
}

/// A compiled path pattern; see `HTTPRouteTable` for the language.
struct HTTPPathPattern: Sendable {
  private enum Part: Sendable {
    case word([UInt8])
    case name(String)
  }

  /// As it was written.
  let text: String
  /// The name of a leading `{name+}`.
  private let prefix: String?
  private let parts: [Part]

  init(_ pattern: String) {
    text = pattern
    var words = pattern.split(separator: "/")[...]
    if let first = words.first, first.hasPrefix("{"), first.hasSuffix("+}") {
      prefix = String(first.dropFirst().dropLast(2))
      words = words.dropFirst()
    } else {
      prefix = nil
    }
    parts = words.map { word in
      word.hasPrefix("{") && word.hasSuffix("}")
        ? .name(String(word.dropFirst().dropLast())) : .word(Array(word.utf8))
    }
  }

  /// What the names stand for if the whole path fits. An empty segment fits no name.
  func match(_ segments: [HTTPPathSegment]) -> HTTPPathParameters? {
    var parameters = HTTPPathParameters()
    let start = segments.count - parts.count
    if let prefix {
      guard start >= 1, segments[..<start].allSatisfy({ !$0.raw.isEmpty }) else { return nil }
      parameters.add(prefix, segments[..<start])
    } else if start != 0 {
      return nil
    }
    for (index, part) in parts.enumerated() {
      let segment = segments[start + index]
      switch part {
      case .word(let word):
        guard segment.isWord(word) else { return nil }
      case .name(let name):
        guard !segment.raw.isEmpty else { return nil }
        parameters.add(name, segments[(start + index)...(start + index)])
      }
    }
    return parameters
  }
}

extension HTTPPathSegment {
  /// Whether this is the word, escapes decoded (`%24batch` is `$batch`), case ignored.
  fileprivate func isWord(_ word: [UInt8]) -> Bool {
    if raw.contains(ASCII.percent) {
      return decoded.map { ASCII.equalIgnoringCase($0.utf8, word) } ?? false
    }
    return ASCII.equalIgnoringCase(raw, word)
  }
}

/// What answers requests. Called from many tasks at once.
package protocol HTTPHandler: Sendable {
  /// Answers one request. Never throws: a failure is a reply too.
  ///
  /// It starts on a thread that serves other connections too, so it must never block; where it
  /// suspends it goes on elsewhere.
  func respond(to request: HTTPRequest) async -> HTTPResponse

  /// Looks at the head of a request whose body has not come yet, so that nothing is kept of one that
  /// is refused anyway. It is called on a thread that serves other connections, and must not wait.
  /// - Parameter head: Without its body. What is let through is looked at again with it.
  func look(atHead head: HTTPRequest) -> HTTPHeadLook

  /// Words the refusal of a request that the server turns down before `respond(to:)`: 400 for a
  /// head that can be read in two ways, 413 for a body over the limit, 429 for one that finds no
  /// room, 431 for headers over it, 503 while the server stops. The body of
  /// `request` is empty.
  ///
  /// Requests that are not HTTP at all, or whose head exceeds even the connection's buffer, are
  /// answered by libmicrohttpd in its own words.
  func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse
}

/// The result of a handler's look at the head of a request.
package enum HTTPHeadLook: Sendable {
  /// The reply, without the body.
  case refused(HTTPResponse)
  /// The body may come. `sender` is who has proven to send it: senders divide the memory for bodies
  /// evenly, and all who have proven nothing count as one.
  case passed(sender: String?)
}

extension HTTPHandler {
  package func look(atHead head: HTTPRequest) -> HTTPHeadLook { .passed(sender: nil) }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    switch status {
    case .badRequest: HTTPResponse(status, text: "The request is not well-formed HTTP.\n")
    case .contentTooLarge: HTTPResponse(status, text: "The request body is too large.\n")
    case .headerFieldsTooLarge: HTTPResponse(status, text: "The request headers are too large.\n")
    case .serviceUnavailable: HTTPResponse(status, text: "The server is stopping.\n")
    default: HTTPResponse(status)
    }
  }
}
