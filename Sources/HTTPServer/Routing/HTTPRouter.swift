import Wire

/// A handler based on a route table: 404 for unknown paths, 405 with `Allow` for unknown methods.
package struct HTTPRouter: HTTPHandler {
  /// A function that handles a request whose path matches a pattern.
  package typealias Action = @Sendable (HTTPRequest, HTTPPathParameters) async -> HTTPResponse

  private var table = HTTPRouteTable<Action>()
  private let refuse: @Sendable (HTTPStatus, HTTPRequest) -> HTTPResponse

  /// - Parameter refuse: Creates every refusal (400 for a path with `.` or `..`, 404, 405, and
  ///   those of `HTTPHandler.reject`); `Allow` is added to its 405.
  package init(
    refuse: @escaping @Sendable (HTTPStatus, HTTPRequest) -> HTTPResponse = { status, _ in
      HTTPResponse(status)
    }
  ) {
    self.refuse = refuse
  }

  /// Adds a route; for patterns see `HTTPRouteTable`.
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

/// A table that maps a method and a path to a value (a handler, an operation).
///
/// A pattern is a path of segments: a fixed word, compared regardless of letter case; `{name}` for
/// one segment; as first segment `{name+}` for the one or more that the rest of the pattern leaves.
/// If several patterns match, the one added first applies.
package struct HTTPRouteTable<Value: Sendable>: Sendable {
  /// The result of a look-up.
  package enum Match: Sendable {
    case found(Value, HTTPPathParameters)
    /// The path is known, but not with this method; with the methods for `Allow`.
    case methodNotAllowed([HTTPMethod])
    case notFound
  }

  private var patternList = HTTPPatternList()
  private var values: [Value] = []

  package init() {}

  /// The registered routes, in the order in which they are tried.
  package var patterns: [(method: HTTPMethod, pattern: String, value: Value)] {
    zip(patternList.entries, values).map { ($0.method, $0.pattern.text, $1) }
  }

  /// Adds a route; `pattern` is a constant of the program, such as `/v1/devices/{id}`.
  package mutating func add(_ method: HTTPMethod, _ pattern: String, _ value: Value) {
    patternList.entries.append((method, HTTPPathPattern(pattern)))
    values.append(value)
  }

  /// Looks up a request.
  ///
  /// - Parameter servesHead: Whether HEAD is served by the route of GET unless it has its own;
  ///   otherwise HEAD is an ordinary method.
  package func match(
    _ method: HTTPMethod, _ target: HTTPTarget, servesHead: Bool = true
  ) -> Match {
    let segments = target.pathSegments
    var found = patternList.first(method, segments)
    if found == nil, servesHead, method == .head { found = patternList.first(.get, segments) }
    if let (index, parameters) = found { return .found(values[index], parameters) }
    let allowed = patternList.methods(segments)
    return allowed.isEmpty ? .notFound : .methodNotAllowed(allowed)
  }
}

/// The methods and patterns of a table. Not generic, because generic code of another module is slow.
private struct HTTPPatternList: Sendable {
  var entries: [(method: HTTPMethod, pattern: HTTPPathPattern)] = []

  func first(
    _ method: HTTPMethod, _ segments: [HTTPPathSegment]
  ) -> (index: Int, parameters: HTTPPathParameters)? {
    // By index, since an iterator would copy every entry.
    for index in entries.indices where entries[index].method == method {
      if let parameters = entries[index].pattern.match(segments) { return (index, parameters) }
    }
    return nil
  }

  /// The methods with which a path is known.
  func methods(_ segments: [HTTPPathSegment]) -> [HTTPMethod] {
    var methods: [HTTPMethod] = []
    for index in entries.indices
    where !methods.contains(entries[index].method) && entries[index].pattern.match(segments) != nil
    {
      methods.append(entries[index].method)
    }
    return methods
  }
}

/// The parts of a path that match a pattern's `{name}`s, by name.
package struct HTTPPathParameters: Sendable {
  private var values: [(name: String, segments: ArraySlice<HTTPPathSegment>)] = []

  init() { values.reserveCapacity(2) }  // mostly hub and id

  mutating func add(_ name: String, _ segments: ArraySlice<HTTPPathSegment>) {
    values.append((name, segments))
  }

  /// The text that matches a name, with each segment decoded once and several joined with `/`;
  /// `nil` if the pattern has no such name or the encoding is invalid.
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

/// A compiled path pattern; see `HTTPRouteTable` for the syntax.
struct HTTPPathPattern: Sendable {
  private enum Part: Sendable {
    case word([UInt8])
    case name(String)
  }

  /// The pattern as written.
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

  /// The parameters if the whole path matches. An empty segment matches no name.
  func match(_ segments: [HTTPPathSegment]) -> HTTPPathParameters? {
    let start = segments.count - parts.count
    guard prefix == nil ? start == 0 : start >= 1 else { return nil }
    // Words first: most patterns fail there, before anything is allocated.
    for index in parts.indices {
      guard case .word(let word) = parts[index] else { continue }
      guard segments[start + index].isWord(word) else { return nil }
    }
    var parameters = HTTPPathParameters()
    if let prefix {
      guard segments[..<start].allSatisfy({ !$0.raw.isEmpty }) else { return nil }
      parameters.add(prefix, segments[..<start])
    }
    for index in parts.indices {
      guard case .name(let name) = parts[index] else { continue }
      let place = start + index
      guard !segments[place].raw.isEmpty else { return nil }
      parameters.add(name, segments[place...place])
    }
    return parameters
  }
}

extension HTTPPathSegment {
  /// Whether this is the word, with escapes decoded (`%24batch` is `$batch`), regardless of letter
  /// case.
  fileprivate func isWord(_ word: [UInt8]) -> Bool {
    if raw.contains(ASCII.percent) {
      return decoded.map { $0.utf8.isEqualIgnoringCase(word) } ?? false
    }
    return raw.isEqualIgnoringCase(word)
  }
}

/// A handler of requests, called from many tasks at once.
package protocol HTTPHandler: Sendable {
  /// Handles one request. Never throws: a failure is a reply too.
  ///
  /// It starts on a thread that serves other connections too, so it must never block; after a
  /// suspension it continues elsewhere.
  func respond(to request: HTTPRequest) async -> HTTPResponse

  /// The handler to which this one passes a request unchanged; `nil` if it answers it itself. The
  /// server asks for it first, so that handlers in front of another cost it no asynchronous call.
  func next(for request: HTTPRequest) -> (any HTTPHandler)?

  /// Checks the head of a request whose body has not arrived yet, so that nothing is stored of a
  /// refused one. It is called on a thread that serves other connections, and must not block; not
  /// for small bodies over HTTP/1.1.
  /// - Parameter head: The head without a body. A request that passes is checked again with its
  ///   body.
  func look(atHead head: HTTPRequest) -> HTTPHeadLook

  /// Creates the refusal of a request that the server turns down before `respond(to:)`: 400 for an
  /// ambiguous head, 413 for a body over the limit, 429 for one without room, 431 for headers over
  /// the limit, 503 while the server stops. The body of `request` is empty.
  ///
  /// Requests that are not HTTP at all, or whose head exceeds even the connection's buffer, are
  /// answered by libmicrohttpd in its own words.
  func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse
}

/// The result of a handler's check of a request's head.
package enum HTTPHeadLook: Sendable {
  /// The reply without reading the body.
  case refused(HTTPResponse)
  /// The body is read. `sender` is the authenticated sender: senders share the memory for bodies
  /// evenly, and all unauthenticated ones count as one.
  case passed(sender: String?)
}

extension HTTPHandler {
  package func next(for request: HTTPRequest) -> (any HTTPHandler)? { nil }

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
