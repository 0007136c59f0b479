/// A handler made of a route table: 404 for unknown paths, 405 with `Allow` for unknown methods.
package struct HTTPRouter: HTTPHandler {
  /// Answers a request whose path fitted a pattern.
  package typealias Action = @Sendable (HTTPRequest, HTTPPathParameters) async -> HTTPResponse

  private var table = HTTPRouteTable<Action>()
  private let refuse: @Sendable (HTTPStatus, HTTPRequest) -> HTTPResponse

  /// - Parameter refuse: Words every refusal (400 for a path with `.` or `..`, 404, 405, and those of `HTTPHandler.reject`); `Allow`
  ///   is added to its 405.
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
