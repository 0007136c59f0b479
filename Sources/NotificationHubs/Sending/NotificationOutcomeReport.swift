import Wire

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The outcomes of a test send, device by device (docs/protocol/rest.md, section 5.7).
public struct NotificationOutcomeReport: Hashable, Sendable {
  /// The outcome of the notification for one registration.
  public struct Result: Hashable, Sendable {
    /// The send format of the platform, such as `apple`.
    public var platform: String
    /// The handle of the device.
    public var pnsHandle: String
    /// The id of the registration.
    public var registrationID: String
    /// The outcome as a sentence.
    public var outcome: String
    /// The HTTP status of the push service; 0 if there was no reply, `nil` on Azure.
    public var status: Int?
    /// The push service's own reason, such as `Unregistered`, or the hub's; `nil` on success, and
    /// on Azure.
    public var reason: String?

    /// Creates a result.
    public init(
      platform: String, pnsHandle: String, registrationID: String, outcome: String,
      status: Int? = nil,
      reason: String? = nil
    ) {
      self.platform = platform
      self.pnsHandle = pnsHandle
      self.registrationID = registrationID
      self.outcome = outcome
      self.status = status
      self.reason = reason
    }
  }

  /// The number of successful sends.
  public var success: Int
  /// The number of failed sends.
  public var failure: Int
  /// The results by registration.
  public var results: [Result]

  /// Creates a report.
  public init(success: Int, failure: Int, results: [Result] = []) {
    self.success = success
    self.failure = failure
    self.results = results
  }
}

extension NotificationOutcomeReport {
  private static let root = "NotificationOutcome"

  /// The document as a hub returns it. The order of the elements is fixed, and `Results` is present
  /// even if it is empty.
  package var xml: String {
    var text = AtomWriter.open(Self.root)
    text.appendElement("Success", String(success))
    text.appendElement("Failure", String(failure))
    guard !results.isEmpty else { return text + "<Results/></\(Self.root)>" }
    text += "<Results>"
    for result in results {
      text += "<RegistrationResult>"
      text.appendElement("ApplicationPlatform", result.platform)
      text.appendElement("PnsHandle", result.pnsHandle)
      text.appendElement("RegistrationId", result.registrationID)
      text.appendElement("Outcome", result.outcome)
      if let status = result.status { text.appendElement("Status", String(status)) }
      if let reason = result.reason { text.appendElement("Reason", reason) }
      text += "</RegistrationResult>"
    }
    return text + "</Results></\(Self.root)>"
  }

  /// Decodes the document that a hub returns.
  package init(xml: Data) throws(WireFormatError) {
    guard let root = XMLNode.parse(xml), root.name == Self.root else {
      throw WireFormatError("The reply is no NotificationOutcome document.")
    }
    self.init(
      success: Int(root.word("Success") ?? "") ?? 0,
      failure: Int(root.word("Failure") ?? "") ?? 0,
      results: (root["Results"]?.children ?? []).map { node in
        Result(
          platform: node.value("ApplicationPlatform") ?? "",
          pnsHandle: node.value("PnsHandle") ?? "",
          registrationID: node.value("RegistrationId") ?? "",
          outcome: node.value("Outcome") ?? "", status: node.word("Status").flatMap { Int($0) },
          reason: node.value("Reason"))
      })
  }

  /// The report for a client that only knows the elements of the original.
  package var withoutExtensions: NotificationOutcomeReport {
    var report = self
    for index in report.results.indices {
      report.results[index].status = nil
      report.results[index].reason = nil
    }
    return report
  }
}

extension NotificationOutcome {
  /// The sentence in a test send's result, which clients show unchanged (docs/protocol/rest.md,
  /// section 5.7).
  package var sentence: String {
    switch self {
    case .success, .refreshToken:
      "The Notification was successfully sent to the Push Notification System"
    case .badChannel, .expiredChannel, .wrongChannel:
      "The Push Notification System handle for the registration is invalid"
    case .invalidToken, .wrongToken: "The Token obtained from the Token Provider is wrong"
    case .invalidNotificationFormat, .invalidNotificationSize:
      "The Notification payload is invalid"
    default: "The Notification was not sent: \(name)"
    }
  }
}
