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
