import Wire

extension Installation {
  /// The maximum length of a template name, in UTF-16 code units (docs/protocol/rest.md, section
  /// 9).
  public static let maximumTemplateNameLength = 200

  /// The maximum number of secondary tiles of an installation. The hub treats each as a separate
  /// device.
  public static let maximumSecondaryTiles = 100

  /// Returns the installation in the form in which a hub stores it, if a hub accepts it
  /// (docs/protocol/rest.md, section 4.1, docs/protocol/tags.md, section 1).
  ///
  /// Apple tokens are upper-cased, blanks around tags and duplicate tags are removed, and each
  /// template gets its own name as its last tag. The syntax of template expressions is not checked
  /// here.
  ///
  /// - Throws: ``WireFormatError`` with one line for each fault.
  public func validated() throws(WireFormatError) -> Installation {
    let (result, faults) = normalized()
    guard faults.isEmpty else { throw .installation(faults) }
    return result
  }

  /// Does the same as ``validated()``, for a hub that adds rules of its own: one line for each
  /// fault.
  package consuming func normalized() -> (installation: Installation, faults: [String]) {
    var result = self
    var faults: [String] = []
    if result.installationID.isEmpty {
      faults.append("'InstallationId' is required.")
    } else if !Tag.isInstallationID(result.installationID)
      || !result.installationID.isPathSegment
    {
      faults.append("'InstallationId' \(Self.identifierRule)")
    }
    if let userID = result.userID, !Tag.isUserID(userID) || !userID.isPathSegment {
      faults.append("'UserId' \(Self.identifierRule)")
    }
    result.pushChannel = result.pushChannel.checked(for: result.platform, faults: &faults)
    result.tags = Self.checked(result.tags, faults: &faults)
    Self.check(&result.templates, faults: &faults)
    if result.platform != .wns, !result.secondaryTiles.isEmpty {
      faults.append("'SecondaryTiles' is supported for the platform 'wns' only.")
    }
    if result.secondaryTiles.count > Self.maximumSecondaryTiles {
      faults.append("There can be \(Self.maximumSecondaryTiles) 'SecondaryTiles' at most.")
    }
    if result.holdsNull {
      // None of the supported databases stores U+0000 in a text, and no push service is known to
      // accept it.
      faults.append("Handles and names must not have the character U+0000.")
    }
    for (name, tile) in result.secondaryTiles {
      var tile = tile
      if tile.pushChannel.trimmingBlanks.isEmpty {
        faults.append("'PushChannel' of the secondary tile '\(name)' is required.")
      }
      tile.tags = Self.checked(tile.tags, faults: &faults)
      Self.check(&tile.templates, faults: &faults)
      result.secondaryTiles[name] = tile
    }
    return (result, faults)
  }

  private var holdsNull: Bool {
    func isIn(_ text: String) -> Bool { text.utf8.withBytes { $0.contains(0) } }
    let isInChannel =
      switch pushChannel {
      case .handle(let text): isIn(text)
      case .subscription(let endpoint, let p256dh, let auth):
        isIn(endpoint) || isIn(p256dh) || isIn(auth)
      }
    return isInChannel || templates.keys.contains(where: isIn)
      || secondaryTiles.contains { id, tile in
        isIn(id) || isIn(tile.pushChannel) || tile.templates.keys.contains(where: isIn)
      }
  }

  /// The rule for installation and user ids, as the end of a sentence.
  package static let identifierRule =
    "must consist of letters, digits and -_@#.:= and fit into a tag of "
    + "\(Tag.maximumLength) characters; '.' and '..' are not allowed."

  private static func checked(_ tags: [Tag], faults: inout [String]) -> [Tag] {
    do { return try Tag.validated(list: tags) } catch {
      faults.append(error.message)
      return tags
    }
  }

  private static func check(_ templates: inout [String: PushTemplate], faults: inout [String]) {
    // `indices` would hold the dictionary, and so have it copied.
    var index = templates.startIndex
    while index != templates.endIndex {
      let name = templates[index].key
      check(&templates.values[index], named: name, faults: &faults)
      templates.formIndex(after: &index)
    }
  }

  private static func check(
    _ template: inout PushTemplate, named name: String, faults: inout [String]
  ) {
    if name.isEmpty || name.utf16.count > maximumTemplateNameLength {
      faults.append(
        "The name of a template must have 1 to \(maximumTemplateNameLength) characters.")
    }
    if template.body.trimmingBlanks.isEmpty {
      faults.append("'Body' of the template '\(name)' is required.")
    }
    // Clients get the name back among the tags, and it need not be a valid tag ("Template Name").
    let nameTag = Tag(rawValue: name)
    template.tags = checked(template.tags.filter { $0 != nameTag }, faults: &faults)
    template.tags.append(nameTag)
  }
}

extension PushChannel {
  fileprivate func checked(for platform: PushPlatform, faults: inout [String]) -> PushChannel {
    switch self {
    case .handle(let text):
      guard !text.trimmingBlanks.isEmpty else {
        faults.append("'PushChannel' is required.")
        return self
      }
      switch platform {
      case .apns:
        guard let token = text.asAPNsToken else {
          faults.append("'PushChannel' must be a device token in hexadecimal digits.")
          return self
        }
        return .handle(token)
      case .browser:
        faults.append("'PushChannel' must hold a subscription with endpoint, p256dh and auth.")
      default: break
      }
      return self
    case .subscription(let endpoint, let p256dh, let auth):
      if platform != .browser {
        faults.append("'PushChannel' must be a text for the platform '\(platform.rawValue)'.")
      } else if [endpoint, p256dh, auth].contains(where: { $0.trimmingBlanks.isEmpty }) {
        faults.append("'PushChannel' must hold a subscription with endpoint, p256dh and auth.")
      }
      return self
    }
  }
}
