/// What Apple writes into the client certificates of its push service, as object identifiers under
/// 1.2.840.113635.100.6.3.
package enum APNsExtension {
  /// May push to the development environment.
  package static let development = "1.2.840.113635.100.6.3.1"
  /// May push to the production environment.
  package static let production = "1.2.840.113635.100.6.3.2"
  /// May push to the app's VoIP tokens.
  package static let voip = "1.2.840.113635.100.6.3.4"
  /// The list of topics: a SEQUENCE of topic and kinds in turn.
  package static let topics = "1.2.840.113635.100.6.3.6"

  /// The contents of a topic list; every topic is of the kind `app`.
  static func encode(topics: [String]) -> [UInt8] {
    var contents: [UInt8] = []
    for topic in topics {
      let kinds = DERReader.element(DERReader.Tag.utf8String, Array("app".utf8))
      contents += DERReader.element(DERReader.Tag.utf8String, Array(topic.utf8))
      contents += DERReader.element(DERReader.Tag.sequence, kinds)
    }
    return DERReader.element(DERReader.Tag.sequence, contents)
  }

  /// The topics of a list; `nil` when the contents do not read as one.
  static func decode(topics value: [UInt8]) -> [String]? {
    var outer = DERReader(value)
    guard let contents = outer.read(DERReader.Tag.sequence), outer.isAtEnd else { return nil }
    var reader = DERReader(contents)
    var topics: [String] = []
    while !reader.isAtEnd {
      if let text = reader.read(DERReader.Tag.utf8String) {
        topics.append(String(decoding: text, as: UTF8.self))
      } else if reader.read(DERReader.Tag.sequence) == nil {
        return nil
      }
    }
    return topics
  }
}

extension Certificate {
  /// What an APNs client certificate allows.
  package struct APNsPermissions: Sendable, Equatable {
    /// The app, from the subject's UID.
    package let bundleID: String
    package let development: Bool
    package let production: Bool
    package let voip: Bool
    /// The certificate's list, or the bundle id alone when it has none.
    package let topics: [String]
    /// True when the certificate lists its topics: then each push must name one.
    package let requiresTopic: Bool
  }

  /// What this certificate allows at APNs; `nil` when it is not an APNs certificate: no UID, or
  /// neither environment.
  package var apnsPermissions: APNsPermissions? {
    guard let bundleID = userID else { return nil }
    let development = extensionValue(APNsExtension.development) != nil
    let production = extensionValue(APNsExtension.production) != nil
    guard development || production else { return nil }
    let listed = extensionValue(APNsExtension.topics).flatMap(APNsExtension.decode(topics:))
    return APNsPermissions(
      bundleID: bundleID, development: development, production: production,
      voip: extensionValue(APNsExtension.voip) != nil,
      topics: listed ?? [bundleID], requiresTopic: listed != nil)
  }
}
