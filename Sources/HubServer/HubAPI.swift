import Foundation
package import HTTPServer
package import HubCore
import NotificationHubs

/// The REST API: translates requests into calls of `HubService`, and their results and errors into
/// the replies that clients of Azure Notification Hubs expect (docs/protocol/rest.md).
///
/// Checks happen in this order: token (401), path and method (404, 405), right (403), hub (404),
/// `api-version` (400), and then those of the operation itself.
package final class HubAPI: HTTPHandler {
  /// The path that returns 200 without a token while the server is running. No hub name can begin
  /// with `$`.
  package static let healthPath = "/$health"

  let service: HubService
  let configuration: HubAPIConfiguration
  /// The pages about the server itself; `nil` disables them.
  let observer: HubObserver?
  /// The sign-in of operators; `nil` disables cookies.
  let signIn: OperatorSignIn?
  /// The caller whose requests need no token; set only by ``respond(to:as:)``, for one request.
  let owner: HubOwner?
  /// The texts that operators were shown lately.
  let textLooks: TextLooks

  package convenience init(
    service: HubService, configuration: HubAPIConfiguration = HubAPIConfiguration(),
    observer: HubObserver? = nil, signIn: OperatorSignIn? = nil
  ) {
    self.init(
      service: service, configuration: configuration, observer: observer, signIn: signIn,
      owner: nil, textLooks: TextLooks())
  }

  private init(
    service: HubService, configuration: HubAPIConfiguration, observer: HubObserver?,
    signIn: OperatorSignIn?, owner: HubOwner?, textLooks: TextLooks
  ) {
    self.owner = owner
    self.textLooks = textLooks
    self.signIn = signIn
    self.observer = observer
    self.service = service
    self.configuration = configuration
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let page = ServerPages(api: self).open(request) { return page }
    return await answer(to: request)
  }

  /// Answers a request of this process, without a token. No listener can reach this: it knows only
  /// ``respond(to:)``, and nothing in a request selects this method.
  package func respond(to request: HTTPRequest, as owner: HubOwner) async -> HTTPResponse {
    // A listener refuses it before it calls the hub.
    guard request.body.count <= configuration.maxBodyBytes else {
      return reject(.contentTooLarge, request: request)
    }
    let api = HubAPI(
      service: service, configuration: configuration, observer: observer, signIn: signIn,
      owner: owner, textLooks: textLooks)
    return await api.answer(to: request)
  }

  private func answer(to request: HTTPRequest) async -> HTTPResponse {
    let start = ContinuousClock.now
    let replies = Replies(to: request, api: self)
    var note = RequestNote()
    let answer = await response(to: request, replies: replies, note: &note)
    if let activity = note.activity { await keep(activity, answer) }
    finished(request, answer, note, replies, since: start)
    return answer
  }

  private func response(
    to request: HTTPRequest, replies: Replies, note: inout RequestNote
  ) async -> HTTPResponse {
    do {
      // Checked before anything else reads the path: two readers could otherwise see two resources.
      if request.target.hasDotSegment { throw HubFailure.dotSegment }
      let pages = ServerPages(api: self)
      if pages.mayObserve(request), let response = try await pages.observe(request) {
        note.operation = "observe"
        return response
      }
      switch Route.table.match(request.method, request.target, servesHead: false) {
      case .found(let route, let parameters):
        return try await route.answer(self, request, parameters, replies, &note)
      case .methodNotAllowed(let allowed): try await refuse(request, allowing: allowed)
      case .notFound: try await refuse(request, allowing: nil)
      }
    } catch {
      return refusal(error, replies)
    }
  }

  /// Refuses a request for which there is no route; holders of a token are told why.
  /// - Parameter allowed: The methods of the resource; `nil` if there is none.
  @inline(never)
  private func refuse(
    _ request: HTTPRequest, allowing allowed: [HTTPMethod]?
  ) async throws -> Never {
    try await requireToken(of: request)
    if let allowed { throw MethodRefusal(allowed) }
    throw HubFailure(status: 404, message: "The requested resource does not exist")
  }

  // Kept out of the asynchronous function, whose local values take memory of every task.
  @inline(never)
  private func refusal(_ error: any Error, _ replies: Replies) -> HTTPResponse {
    switch error {
    case let refusal as MethodRefusal:
      var response = replies.failure(refusal.failure)
      response.headers.add("Allow", refusal.allowed)
      return response
    case let failure as HubFailure: return replies.failure(failure)
    default:
      // The error is not part of the reply, since its text could contain anything.
      return replies.failure(
        HubFailure(
          status: 500, message: "The server was unable to process the request; try again later"))
    }
  }

  /// Refuses with 401 before the body is read if there is no valid token; an operator's cookie is
  /// checked later.
  package func look(atHead head: HTTPRequest) -> HTTPHeadLook {
    guard [.put, .post, .patch].contains(head.method), !head.target.hasDotSegment,
      signIn == nil || head.headers["Cookie"] == nil || head.headers["Authorization"] != nil,
      case .found(let route, let parameters) = Route.table.match(
        head.method, head.target, servesHead: false), !route.rights.isEmpty
    else { return .passed(sender: nil) }
    do {
      let sender = try service.sender(of: tokenCall(head), hub: parameters["hub"] ?? "")
      return .passed(sender: sender)
    } catch {
      let replies = Replies(to: head, api: self)
      let answer = replies.failure(error)
      finished(head, answer, RequestNote(), replies, since: .now)
      return .refused(answer)
    }
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    let message =
      switch status {
      case .badRequest: "The request is not well-formed HTTP"
      case .contentTooLarge:
        "The request body exceeds the maximum of \(configuration.maxBodyBytes) bytes"
      case .headerFieldsTooLarge: "The request headers are too large"
      case .serviceUnavailable: "The server is stopping; try again later"
      case .tooManyRequests: "Too many bodies of requests are under way; try again later"
      default: "The request cannot be served"
      }
    return Replies(to: request, api: self).failure(
      HubFailure(
        status: status.rawValue, message: message,
        retryAfter: status == .tooManyRequests ? 1 : nil))
  }

}

/// A user who can open the store and therefore has all rights in all hubs, without a key.
package struct HubOwner: Sendable {
  package let caller: Caller
  /// Called with the reason if the activity log could not be written; the action itself is done.
  package let unlogged: @Sendable (HubFailure) -> Void

  /// - Parameter name: The name of the user, without a prefix.
  package init(commandLine name: String, unlogged: @escaping @Sendable (HubFailure) -> Void) {
    caller = Caller(name: "command-line/\(name)", via: .commandLine, rights: .all)
    self.unlogged = unlogged
  }
}

/// The facts about a request that are known when it is answered.
struct RequestNote {
  /// The operation; `nil` if the request was not understood, or was refused earlier.
  var operation: String?
  /// Whether the caller's token or cookie was valid.
  var isKnown = false
  var hub: String?
  /// The entry for the activity log; `nil` if the request changes nothing.
  var activity: ActivityNote?
}

extension HubAPI {
  /// Counts a reply and logs it: a server error as a warning, a refusal as information, anything
  /// else for debugging. The number of refusals logged is limited.
  // Kept out of the asynchronous function, as above.
  @inline(never)
  func finished(
    _ request: HTTPRequest, _ response: HTTPResponse, _ note: RequestNote, _ replies: Replies,
    since start: ContinuousClock.Instant
  ) {
    guard let observer else { return }
    let seconds = start.duration(to: .now) / .seconds(1)
    // Nobody receives the reply after the client has left: 499, as in nginx.
    let status = Task.isCancelled ? 499 : response.status.rawValue
    service.dispatcher.metrics.replied(status: status, seconds: seconds)
    let level: LogLevel = status >= 500 ? .warning : status >= 400 ? .info : .debug
    guard observer.log.admits(level) else { return }
    if status >= 400,
      !observer.refusals.admits(
        isKnown: note.isKnown, from: request.remoteAddress, in: observer.log)
    {
      return
    }
    observer.log(
      level, "request", "",
      [
        ("method", .text(request.method.rawValue)),
        ("operation", .text(note.operation ?? "unknown")), ("hub", .text(note.hub ?? "")),
        ("status", .number(status)), ("ms", .decimal(seconds * 1000)),
        ("trackingId", .text(replies.trackingID.description)),
      ])
  }

  /// Writes a request's action to the activity log, now that its result is known. The reply waits
  /// for it; if the store is unavailable, only the server's own log records it.
  // Kept out of the calling function, whose frame takes memory of every task.
  @inline(never)
  func keep(_ activity: ActivityNote, _ response: HTTPResponse) async {
    do {
      try await service.keep(activity, status: response.status.rawValue)
    } catch {
      owner?.unlogged(error)
      textLooks.forget(of: activity.caller.name, in: activity.hub)
      let line = activity.entry(status: response.status.rawValue).line
      observer?.log(
        .warning, "activity.lost", error.message ?? "the store refused",
        [
          ("hub", .text(line.hub ?? "")), ("actor", .text(line.actor)),
          ("action", .text(line.action)), ("status", .number(line.status)),
        ])
    }
  }
}

extension HubFailure {
  fileprivate static let dotSegment = HubFailure(
    status: 400, message: "The path has a segment '.' or '..', which no id or name can be")
}

/// 405 with the allowed methods.
struct MethodRefusal: Error {
  let allowed: String
  let failure = HubFailure(
    status: 405, message: "The specified HTTP verb is not valid for this resource")

  init(_ methods: [HTTPMethod]) {
    allowed = methods.map(\.rawValue).joined(separator: ", ")
  }
}

/// The settings of the REST API.
package struct HubAPIConfiguration: Sendable {
  /// Further names under which clients may have signed their tokens, besides the one in a request's
  /// `Host` header: those of a proxy in front of the server (docs/protocol/sas.md, section 4.1).
  /// Without port.
  package var publicHosts: [String] = []
  /// The scheme of the URLs in replies: `https` if a proxy in front terminates TLS. `nil` uses that
  /// of the listener that received the request.
  package var publicScheme: String?
  /// The name of the namespace; `nil` takes it from the request's host.
  package var namespace: String?
  /// The value of the `Server` header.
  package var serverName = "Belfry"

  package init() {}

  /// The maximum body of any request, in bytes, as its listener has it. A notification has its own,
  /// smaller limit.
  package var maxBodyBytes = defaultMaxBodyBytes
  /// Fits a batch of a thousand devices with any handles.
  package static let defaultMaxBodyBytes = 1024 * 1024

  /// The listener limits suitable for this API; host and port remain to be set.
  package static var listener: HTTPConfiguration {
    var configuration = HTTPConfiguration()
    configuration.maxBodyBytes = defaultMaxBodyBytes
    return configuration
  }
}
