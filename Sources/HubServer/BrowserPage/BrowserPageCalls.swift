import Foundation
import HTTPServer
import HubCore

/// What the page's scripts call: JSON in, JSON out.
struct BrowserPageCalls: Sendable {
  let desk: any BrowserPageDesk

  func settings(_ request: HTTPRequest) async throws -> HTTPResponse {
    let settings = try await desk.settings(
      host: request.headers["Host"] ?? "", isSecure: request.isSecure)
    return try Self.json(settings)
  }

  func subscribe(_ request: HTTPRequest) async throws -> HTTPResponse {
    let wanted: LocalSubscription.Wanted = try Self.body(of: request)
    return try Self.json(try await desk.subscribe(wanted), status: .created)
  }

  func subscription(_ id: String) async throws -> HTTPResponse {
    try Self.json(try await require(id))
  }

  func unsubscribe(_ id: String) async throws -> HTTPResponse {
    try await require(id)
    try await desk.unsubscribe(id)
    return HTTPResponse(.noContent)
  }

  /// Goes on where the page's line broke (`Last-Event-ID`), or where its last visit ended (`after`).
  func messages(_ request: HTTPRequest, of id: String) async throws -> HTTPResponse {
    let position = request.headers["Last-Event-ID"] ?? request.target.queryItem("after")?.value
    let events = desk.messages(of: try await require(id), after: position.flatMap { Int($0) })
    return HTTPResponse(
      .ok, headers: ServerSentEvent.headers,
      body: .stream { writer in
        try await writer.write(ServerSentEvent.comment("open"))
        for try await event in Self.beating(events) {
          try await writer.write(event?.bytes ?? ServerSentEvent.comment(""))
        }
      })
  }

  /// The events, and `nil` every two seconds: that a page has gone shows only when it is written to,
  /// and until then the push service would take its browser for one that listens.
  private static func beating(
    _ events: AsyncThrowingStream<ServerSentEvent, any Error>
  ) -> AsyncThrowingStream<ServerSentEvent?, any Error> {
    AsyncThrowingStream { continuation in
      let beat = Task {
        while true {
          try await Task.sleep(for: .seconds(2))
          continuation.yield(nil)
        }
      }
      let relay = Task {
        do {
          for try await event in events { continuation.yield(event) }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in
        beat.cancel()
        relay.cancel()
      }
    }
  }

  func push(_ request: HTTPRequest) async throws -> HTTPResponse {
    let wanted: BrowserPush = try Self.body(of: request)
    return try Self.json(try await desk.push(wanted))
  }

  @discardableResult
  private func require(_ id: String) async throws -> LocalSubscription {
    guard let subscription = try await desk.subscription(id) else {
      throw HubFailure(status: 404, message: "There is no such subscription; subscribe again")
    }
    return subscription
  }

  // MARK: Words

  /// Answers a page of this origin; anybody else is refused, and so is a body that a form could
  /// send, since forms ask nobody's leave.
  static func answer(
    _ request: HTTPRequest, _ action: () async throws -> HTTPResponse
  ) async -> HTTPResponse {
    if request.isFromElsewhere() {
      return refusal(403, "Only the page itself may ask for this")
    }
    do {
      return try await action()
    } catch let failure as HubFailure {
      return refusal(
        HTTPStatus(rawValue: failure.status), failure.message ?? "The hub does not allow it")
    } catch {
      // What went wrong is for the operator's log, not for a page.
      return refusal(502, "Belfry’s push service does not answer")
    }
  }

  static func refusal(_ status: HTTPStatus, _ message: String) -> HTTPResponse {
    (try? json(["error": message], status: status)) ?? HTTPResponse(status)
  }

  private static func json(
    _ value: some Encodable, status: HTTPStatus = .ok
  ) throws -> HTTPResponse {
    HTTPResponse(
      status, headers: ["Content-Type": "application/json", "Cache-Control": "no-store"],
      body: .bytes(Array(try JSONEncoder().encode(value))))
  }

  private static func body<Body: Decodable>(of request: HTTPRequest) throws -> Body {
    guard request.hasJSONBody,
      let body = try? JSONDecoder().decode(Body.self, from: Data(request.body))
    else {
      throw HubFailure(
        status: 400, message: "The body must be JSON, with the members that the page sends")
    }
    return body
  }
}
