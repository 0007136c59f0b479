import Wire

/// What came of calling a notification off: Belfry's answer to `DELETE /{hub}/messages/{id}`.
public struct NotificationAbort: Hashable, Sendable {
  public var notificationID: String
  /// `Canceled`, unless all its devices had been sent to already, or some have not been counted yet.
  public var state: NotificationTelemetry.State
  /// How many devices were not sent to, as far as they have been counted.
  public var aborted: Int

  public init(notificationID: String, state: NotificationTelemetry.State, aborted: Int) {
    self.notificationID = notificationID
    self.state = state
    self.aborted = aborted
  }

  package var json: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("notificationId", notificationID)
    writer.member("state", state.rawValue)
    writer.member("aborted", aborted)
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let id = root["notificationId"]?.scalarText, let state = root["state"]?.scalarText,
      let aborted = root["aborted"]?.count
    else { throw WireFormatError("The reply tells of no abort.") }
    self.init(notificationID: id, state: .init(rawValue: state), aborted: aborted)
  }
}
