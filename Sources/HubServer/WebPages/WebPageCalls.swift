import Foundation
import HTTPServer
import HubCore

/// The calls of a web page's scripts that are not part of the hub's own API: JSON in, JSON out.
enum WebPageCalls {
  /// Answers a page of this origin. All others are refused, and so are bodies that a form could
  /// send, since forms need no permission of the server.
  ///
  /// - Parameter failing: The message for a failure whose own text is meant for the operator's log
  ///   only.
  static func answer(
    _ request: HTTPRequest, failing: String, _ action: () async throws -> HTTPResponse
  ) async -> HTTPResponse {
    if request.isFromElsewhere() {
      return refusal(403, "Only the page itself may ask for this")
    }
    do {
      return try await action()
    } catch let failure as HubFailure {
      var response = refusal(
        HTTPStatus(rawValue: failure.status), failure.message ?? "The hub does not allow it")
      response.headers["Retry-After"] = failure.retryAfter.map(String.init)
      return response
    } catch {
      return refusal(502, failing)
    }
  }

  static func refusal(_ status: HTTPStatus, _ message: String) -> HTTPResponse {
    (try? json(["error": message], status: status)) ?? HTTPResponse(status)
  }

  static func json(_ value: some Encodable, status: HTTPStatus = .ok) throws -> HTTPResponse {
    HTTPResponse(
      status, headers: ["Content-Type": "application/json", "Cache-Control": "no-store"],
      body: .bytes(Array(try JSONEncoder().encode(value))))
  }

  static func body<Body: Decodable>(of request: HTTPRequest) throws -> Body {
    guard request.hasJSONBody,
      let body = try? JSONDecoder().decode(Body.self, from: Data(request.body))
    else {
      throw HubFailure(
        status: 400, message: "The body must be JSON, with the members that the page sends")
    }
    return body
  }

  /// A reply that streams events, with a comment every two seconds: a closed page is noticed only
  /// when writing to it, and until then a push service would consider its device connected.
  static func stream(
    _ events: AsyncThrowingStream<ServerSentEvent, any Error>
  ) -> HTTPResponse {
    HTTPResponse(
      .ok, headers: ServerSentEvent.headers,
      body: .stream { writer in
        try await writer.write(ServerSentEvent.comment("open"))
        for try await event in beating(events) {
          try await writer.write(event?.bytes ?? ServerSentEvent.comment(""))
        }
      })
  }

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
}
