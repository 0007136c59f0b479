import Foundation
package import HTTPServer
package import HubCore
import NotificationHubs

/// The REST API: translates requests into calls of `HubService`, and what these return or throw into
/// the replies that clients of Azure Notification Hubs expect (spec `rest-api.md`).
///
/// In this order: token (401), path and method (404, 405), right (403), hub (404), `api-version`
/// (400), and only then what the operation itself finds wrong.
package struct HubAPI: HTTPHandler {
  /// Answers 200 without a token while the server serves. No hub's name can begin with `$`.
  package static let healthPath = "/$health"

  let service: HubService
  let configuration: HubAPIConfiguration
  /// `nil` tells nobody anything.
  let observer: HubObserver?

  package init(
    service: HubService, configuration: HubAPIConfiguration = HubAPIConfiguration(),
    observer: HubObserver? = nil
  ) {
    self.observer = observer
    self.service = service
    self.configuration = configuration
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    if isHealthCheck(request) { return health(request) }
    if let page = frontPage(request) { return page }
    let start = ContinuousClock.now
    let replies = replies(to: request)
    var note = RequestNote()
    let answer = await response(to: request, replies: replies, note: &note)
    finished(request, answer, note, replies, since: start)
    return answer
  }

  private func response(
    to request: HTTPRequest, replies: Replies, note: inout RequestNote
  ) async -> HTTPResponse {
    do {
      // Before anything else looks at the path: two readers could understand two resources.
      if request.target.hasDotSegment { throw HubFailure.dotSegment }
      if let response = try await observe(request, replies: replies) {
        note.operation = "observe"
        return response
      }
      if let response = try await manage(request, replies: replies) {
        note.operation = "manageHub"
        return response
      }
      if let response = try await feedback(request, replies: replies) {
        note.operation = "readFeedback"
        return response
      }
      let call = try await call(for: request, replies: replies)
      note.operation = "\(call.operation)"
      note.hub = call.hub.name
      try APIVersion.check(request.target)
      return try await perform(call)
    } catch let refusal as MethodRefusal {
      var response = replies.failure(refusal.failure)
      response.headers.add("Allow", refusal.allowed)
      return response
    } catch let failure as HubFailure {
      return replies.failure(failure)
    } catch {
      // What went wrong is the server's own affair; its text could hold anything.
      return replies.failure(
        HubFailure(
          status: 500, message: "The server was unable to process the request; try again later"))
    }
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    let message =
      switch status {
      case .badRequest: "The request is not well-formed HTTP"
      case .contentTooLarge:
        "The request body exceeds the maximum of \(HubAPIConfiguration.maxBodyBytes) bytes"
      case .headerFieldsTooLarge: "The request headers are too large"
      case .serviceUnavailable: "The server is stopping; try again later"
      default: "The request cannot be served"
      }
    return replies(to: request).failure(HubFailure(status: status.rawValue, message: message))
  }

  private func replies(to request: HTTPRequest) -> Replies {
    Replies(
      configuration: configuration,
      trackingID: TrackingID(from: request.headers[WireName.trackingID]), now: service.clock.now,
      isSecure: request.isSecure)
  }

  private func isHealthCheck(_ request: HTTPRequest) -> Bool {
    let segments = request.target.pathSegments
    return segments.count == 1 && segments[0].decoded == String(Self.healthPath.dropFirst())
  }

  private func health(_ request: HTTPRequest) -> HTTPResponse {
    guard request.method == .get || request.method == .head else {
      return HTTPResponse(.methodNotAllowed, headers: ["Allow": "GET, HEAD"])
    }
    return HTTPResponse(.ok, text: "ok\n")
  }

  /// The token in the header or, where an address that opens itself leads to, in the query.
  private func token(of request: HTTPRequest, for operation: HubOperation) -> String? {
    let header = request.headers[WireName.authorization]
    return operation == .getNotificationErrors ? header ?? request.tokenInQuery : header
  }

  /// Finds the operation and lets the token's holder in.
  private func call(for request: HTTPRequest, replies: Replies) async throws -> HubCall {
    switch HubOperation.table.match(request.method, request.target, servesHead: false) {
    case .found(let operation, let parameters):
      let hub = try await service.authorize(
        header: token(of: request, for: operation), hub: parameters["hub"] ?? "",
        host: request.headers["Host"], path: request.target.description,
        publicNames: configuration.publicHosts, requiring: operation.right(for: request.target))
      return HubCall(
        operation: operation, hub: hub, id: parameters["id"], request: request, replies: replies)
    case .methodNotAllowed(let allowed):
      try await requireToken(of: request)
      throw MethodRefusal(allowed)
    case .notFound:
      try await requireToken(of: request)
      throw HubFailure(status: 404, message: "The requested resource does not exist")
    }
  }
}

/// An operation asked for by someone who may.
struct HubCall {
  let operation: HubOperation
  let hub: Hub
  /// The id, or the tag, that the path names; `nil` if its encoding is broken, or there is none.
  let id: String?
  let request: HTTPRequest
  let replies: Replies

  /// The id, or the refusal of a path that is no text.
  func requiredID() throws(HubFailure) -> String {
    guard let id else {
      throw HubFailure(status: 400, message: "The id in the path is not valid percent-encoded text")
    }
    return id
  }
}

extension HubFailure {
  fileprivate static let dotSegment = HubFailure(
    status: 400, message: "The path has a segment '.' or '..', which no id or name can be")
}

/// 405 with the methods that would do.
struct MethodRefusal: Error {
  let allowed: String
  let failure = HubFailure(
    status: 405, message: "The specified HTTP verb is not valid for this resource")

  init(_ methods: [HTTPMethod]) {
    allowed = methods.map(\.rawValue).joined(separator: ", ")
  }
}
