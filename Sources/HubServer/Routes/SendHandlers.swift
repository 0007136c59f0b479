import HTTPServer
import HubCore
import NotificationHubs

/// Sends, schedules and aborts (docs/protocol/rest.md, section 5).
struct SendHandlers: RouteHandlers {
  let api: HubAPI

  private enum Flag {
    static let direct = "direct"
    static let test = "test"
    static let dryRun = WireName.dryRun
  }

  /// Handles three operations on one path, distinguished by flags; `direct` takes precedence over
  /// `test`, which has no meaning for a direct send (docs/protocol/rest.md, section 5.7).
  func send(_ call: HubCall) async throws -> HTTPResponse {
    let request = call.request
    if request.target.isFlagSet(Flag.dryRun) {
      call.activity?.settle()
      return try await previewSend(call, isDirect: request.target.isFlagSet(Flag.direct))
    }
    if request.target.isFlagSet(Flag.direct) {
      call.activity?.refine(action: .sendDirect)
      let record = try await service.sendDirect(
        hub: call.hub, headers: request.headers, body: request.body, activity: call.activity)
      return accepted(record, .direct, call)
    }
    if request.target.isFlagSet(Flag.test) {
      call.activity?.refine(action: .testSend)
      let report = try await service.testSend(
        hub: call.hub, headers: request.headers, body: request.body)
      let shown = request.readsExtensions ? report : report.withoutExtensions
      return call.replies.document(.created, Array(shown.xml.utf8))
    }
    let record = try await service.send(
      hub: call.hub, headers: request.headers, body: request.body, activity: call.activity)
    return accepted(record, .audience, call)
  }

  /// Refuses a dry run where it is not supported: the flag must never be ignored.
  private func refuseDryRun(_ call: HubCall) throws(HubFailure) {
    guard call.request.target.isFlagSet(Flag.dryRun) else { return }
    throw HubFailure(
      status: 400, message: "'dry-run' is for POST /messages; this request would have sent")
  }

  func batch(_ call: HubCall) async throws -> HTTPResponse {
    try refuseDryRun(call)
    let record = try await service.sendBatch(
      hub: call.hub, headers: call.request.headers, body: call.request.body,
      activity: call.activity)
    return accepted(record, .batch, call)
  }

  func schedule(_ call: HubCall) async throws -> HTTPResponse {
    try refuseDryRun(call)
    guard !call.request.target.isFlagSet(Flag.direct) else {
      throw HubFailure(
        status: 400,
        message: "A scheduled notification goes to tags or to every device; 'direct' is not "
          + "supported")
    }
    let record = try await service.schedule(
      hub: call.hub, headers: call.request.headers, body: call.request.body,
      activity: call.activity)
    return accepted(record, .scheduled, call)
  }

  func cancelScheduled(_ call: HubCall) async throws -> HTTPResponse {
    try await service.cancelScheduled(
      hub: call.hub, id: NotificationID(rawValue: call.requiredID()))
    return call.replies.empty(.ok)
  }

  func abort(_ call: HubCall) async throws -> HTTPResponse {
    let abort = try await service.abort(
      hub: call.hub, id: NotificationID(rawValue: call.requiredID()))
    observer?.log(
      .info, "send.aborted", "",
      [
        ("hub", .text(call.hub.name)), ("notification", .text(abort.notificationID)),
        ("state", .text(abort.state.rawValue)), ("devices", .number(abort.aborted)),
      ])
    return call.replies.json(abort.json)
  }

  private func accepted(
    _ record: NotificationRecord, _ kind: SendKind, _ call: HubCall
  ) -> HTTPResponse {
    service.dispatcher.metrics.accepted(kind: kind.rawValue)
    observer?.log(
      .info, "send.accepted", "",
      [
        ("hub", .text(call.hub.name)), ("notification", .text(record.id.rawValue)),
        ("kind", .text(kind.rawValue)), ("format", .text(record.request.format.word)),
        ("bytes", .number(record.request.body.count)),
      ])
    var response = call.replies.empty(.created)
    response.headers.add(WireName.location, api.address(of: record.id, below: call.request))
    return response
  }

  /// Previews a send without sending.
  private func previewSend(_ call: HubCall, isDirect: Bool) async throws -> HTTPResponse {
    let preview = try await service.preview(
      hub: call.hub, headers: call.request.headers, body: call.request.body, isDirect: isDirect)
    return call.replies.json(preview.json)
  }
}

/// The kinds of sends, as named in metrics and logs.
enum SendKind: String, CaseIterable {
  case audience, direct, batch, scheduled
}
