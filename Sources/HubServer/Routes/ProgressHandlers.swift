import Foundation
import HTTPServer
import HubCore
import NotificationHubs

/// The progress of a notification, at once or as server-sent events (`docs/extensions.md`).
struct ProgressHandlers: RouteHandlers {
  let api: HubAPI

  /// The maximum duration of a stream in seconds, which limits watching with an expired token.
  private static let longestStream = 3_600.0
  /// The interval in seconds at which a stream checks that its operator is still signed in, or its
  /// key still exists. There is an update at least every ``ProgressFeeds/silence``.
  private static let trust = 5.0

  func get(_ call: HubCall) async throws -> HTTPResponse {
    let progress = try await service.notifications.progress(
      of: NotificationID(rawValue: call.requiredID()), hub: call.hub)
    return call.replies.json(progress.json)
  }

  func stream(_ call: HubCall) async throws -> HTTPResponse {
    let (api, clock, start) = (api, service.clock, service.clock.now())
    let updates = try await service.notifications.progressUpdates(
      of: NotificationID(rawValue: call.requiredID()), hub: call.hub)
    var response = call.replies.bare(.ok)
    for (name, value) in ServerSentEvent.headers { response.headers[name] = value }
    // A buffering proxy would delay the events.
    response.headers["X-Accel-Buffering"] = "no"
    response.body = .stream { writer in
      let end = clock.steady().addingTimeInterval(Self.longestStream)
      var last: NotificationProgress?
      var trustedUntil = clock.steady().addingTimeInterval(Self.trust)
      for await progress in updates {
        if clock.steady() >= trustedUntil {
          guard await api.isStillAllowed(call, since: start) else { return }
          trustedUntil = clock.steady().addingTimeInterval(Self.trust)
        }
        let data = String(decoding: progress.json, as: UTF8.self)
        if progress.state.isFinal {
          try await writer.write(ServerSentEvent(event: NotificationEvent.end, data: data).bytes)
          return
        }
        if progress == last {
          try await writer.write(ServerSentEvent.comment(""))
        } else {
          last = progress
          try await writer.write(
            ServerSentEvent(event: NotificationEvent.progress, data: data).bytes)
        }
        if clock.steady() >= end { return }
      }
    }
    return response
  }
}
