import NotificationHubs

extension HubService {
  /// Accepts one notification for many devices that the body names (docs/protocol/rest.md,
  /// section 5.5); as ``send(hub:headers:body:)``.
  ///
  /// - Parameters:
  ///   - headers: Those of the request; the content type says how the body is taken apart.
  ///   - body: Of multipart form, with the parts `notification` and `devices`.
  package func sendBatch(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8],
    activity: ActivityNote? = nil
  ) async throws -> NotificationRecord {
    let headers = SendHeaders(headers)
    let batch: DirectBatch
    do throws(WireFormatError) {
      batch = try DirectBatch(
        body, contentType: headers[SendHeaderName.contentType] ?? "",
        maximum: limits.devicesPerBatch)
    } catch {
      throw HubFailure(status: 400, message: error.message)
    }
    let request = try NotificationRequest(
      headers: headers.with(contentType: batch.contentType), body: batch.notification,
      limits: limits, isDirect: true)
    let targets = try DirectTarget.targets(for: batch.devices, try request.directPlatform)
    let submission = direct(request, to: targets, hub: hub)
    return try await accept(submission, headers: headers, kind: "batch", activity: activity)
  }
}
