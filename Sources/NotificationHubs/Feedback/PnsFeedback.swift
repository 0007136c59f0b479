import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A push service's feedback about one device: a document in the feedback container
/// (docs/protocol/rest.md, section 6).
public struct PnsFeedback: Hashable, Sendable {
  /// The time of the feedback.
  public var feedbackTime: Date
  /// The wire name of the outcome, such as `ExpiredChannel`.
  public var notificationSystemError: String
  /// The send format of the platform, such as `apple`.
  public var platform: String
  /// The handle that the feedback is about.
  public var pnsHandle: String
  /// The id of the registration with the handle, if any.
  public var registrationID: String?
  /// The id of the installation with the handle, if any.
  public var installationID: String?
  /// The id of the notification that led to the feedback, if known.
  public var notificationID: String?
  /// The handle that replaces the old one; `nil` if the push service gave none.
  public var newPnsHandle: String?

  /// Creates a feedback document.
  public init(
    feedbackTime: Date, notificationSystemError: String, platform: String, pnsHandle: String,
    registrationID: String? = nil, installationID: String? = nil, notificationID: String? = nil,
    newPnsHandle: String? = nil
  ) {
    self.feedbackTime = feedbackTime
    self.notificationSystemError = notificationSystemError
    self.platform = platform
    self.pnsHandle = pnsHandle
    self.registrationID = registrationID
    self.installationID = installationID
    self.notificationID = notificationID
    self.newPnsHandle = newPnsHandle
  }
}

extension PnsFeedback {
  private static let root = "PnsFeedback"

  /// The document, on one line, with members in their fixed order. A file is a sequence of such
  /// documents.
  package var xml: String {
    var text = AtomWriter.open(Self.root)
    text.appendElement("FeedbackTime", WireDate.trimmed(feedbackTime))
    text.appendElement("NotificationSystemError", notificationSystemError)
    text.appendElement("Platform", platform)
    text.appendElement("PnsHandle", pnsHandle)
    text.appendElement("RegistrationId", registrationID)
    text.appendElement("InstallationId", installationID)
    text.appendElement("NotificationId", notificationID)
    text.appendElement("NewPnsHandle", newPnsHandle)
    return text + "</\(Self.root)>"
  }

  /// Reads a file of the feedback container: a sequence of documents. Each may have its own XML
  /// declaration, whose encoding is not the one in use.
  ///
  /// - Throws: ``WireFormatError`` if a document cannot be read.
  public static func parse(_ file: Data) throws(WireFormatError) -> [PnsFeedback] {
    let end = Array("</\(root)".utf8)
    var documents: [PnsFeedback] = []
    var rest = file[...]
    while let mark = rest.firstRange(of: end) {
      guard let close = rest[mark.upperBound...].firstIndex(of: UInt8(ascii: ">")) else { break }
      let after = rest.index(after: close)
      documents.append(try PnsFeedback(document: rest[..<after]))
      rest = rest[after...]
    }
    guard rest.allSatisfy({ $0 <= 0x20 }) else { throw fault }
    return documents
  }

  private static let fault = WireFormatError("The file is no list of PnsFeedback documents.")

  private init(document: Data) throws(WireFormatError) {
    guard let node = XMLNode.parse(document), node.name == Self.root,
      let time = node.word("FeedbackTime").flatMap(WireDate.parse),
      let handle = node.value("PnsHandle")
    else { throw Self.fault }
    self.init(
      feedbackTime: time, notificationSystemError: node.word("NotificationSystemError") ?? "",
      platform: node.word("Platform") ?? "", pnsHandle: handle,
      registrationID: node.word("RegistrationId"), installationID: node.word("InstallationId"),
      notificationID: node.word("NotificationId"), newPnsHandle: node.word("NewPnsHandle"))
  }
}
