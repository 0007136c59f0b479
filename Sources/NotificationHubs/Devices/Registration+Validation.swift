import Wire

extension Registration {
  /// Returns the registration in the form in which a hub stores it, if a hub accepts it
  /// (docs/protocol/rest.md, section 3.11): Apple tokens in upper case, tags without surrounding
  /// blanks or duplicates. The syntax of template expressions is not checked here.
  ///
  /// - Throws: ``WireFormatError`` that names the fault.
  public func validated() throws(WireFormatError) -> Registration {
    var result = self
    result.channel = try checkedChannel()
    result.tags = try Tag.validated(list: tags)
    if case .template(let template, let name) = kind {
      try check(template)
      if let name, name.utf16.count > Installation.maximumTemplateNameLength {
        throw WireFormatError(
          "'TemplateName' must have at most \(Installation.maximumTemplateNameLength) characters.")
      }
    }
    return result
  }

  private func checkedChannel() throws(WireFormatError) -> PushChannel {
    let element = RegistrationElement.handles(platform)[0]
    switch channel {
    case .subscription(let endpoint, let p256dh, let auth):
      guard platform == .browser else {
        throw WireFormatError("A subscription is the channel of the platform 'browser' only.")
      }
      guard endpoint.isAbsoluteURI else {
        throw WireFormatError("'\(element)' must be an absolute URI.")
      }
      guard ![p256dh, auth].contains(where: { $0.trimmingBlanks.isEmpty }) else {
        throw Self.invalidDescription
      }
      return channel
    case .handle(let text):
      let handle = text.trimmingBlanks
      guard platform != .browser, !handle.isEmpty else { throw Self.invalidDescription }
      switch platform {
      case .apns:
        guard let token = handle.asAPNsToken else {
          throw WireFormatError("'\(element)' must be a device token in hexadecimal digits.")
        }
        return .handle(token)
      case .wns, .mpns:
        guard handle.isAbsoluteURI else {
          throw WireFormatError("'\(element)' must be an absolute URI.")
        }
        return .handle(handle.withRootPath)
      case .baidu:
        guard let ids = channel.baiduIDs, !ids.userID.isEmpty, !ids.channelID.isEmpty else {
          throw Self.invalidDescription
        }
      default: break
      }
      return .handle(handle)
    }
  }

  private func check(_ template: PushTemplate) throws(WireFormatError) {
    let body = template.body.trimmingBlanks
    guard !body.isEmpty else { throw Self.invalidDescription }
    for (name, value) in template.headers where value.trimmingBlanks.isEmpty {
      throw WireFormatError("The header '\(name)' of the template must not be empty.")
    }
    switch platform {
    case .apns:
      let older = WireName.olderApnsPriority.lowercased()
      for name in template.headers.keys.map({ $0.lowercased() })
      where !name.hasPrefix("apns-") && name != older {
        throw WireFormatError("The header '\(name)' is not Apple's; those begin with 'apns-'.")
      }
      try Self.checkJSON(body)
    case .wns: try Self.checkWindows(body, type: template.header(WireName.wnsType))
    case .mpns: try Self.checkMpns(body, notificationClass: template.header(WireName.mpnsClass))
    default: try Self.checkJSON(body)
    }
  }

  private static func checkJSON(_ body: String) throws(WireFormatError) {
    guard body.utf8.first == UInt8(ascii: "{") else {
      throw WireFormatError("'BodyTemplate' must be a JSON object.")
    }
  }

  private static func checkWindows(_ body: String, type: String?) throws(WireFormatError) {
    guard let type = type.map(\.trimmingBlanks)?.lowercased(), !type.isEmpty else {
      throw WireFormatError("A Windows template needs the header '\(WireName.wnsType)'.")
    }
    if body.utf8.first == UInt8(ascii: "{") { return }
    guard body.utf8.first == UInt8(ascii: "<") else {
      throw WireFormatError("'BodyTemplate' must be an XML document or a JSON object.")
    }
    guard type != "wns/raw" else { return }
    guard let root = XMLNode.parse(body.utf8), ["toast", "tile", "badge"].contains(root.name)
    else {
      throw WireFormatError("'BodyTemplate' must be XML with the root toast, tile or badge.")
    }
  }

  /// The classes of raw notifications, whose body has no prescribed format.
  private static let rawClasses = [3...10, 13...20, 23...31]

  private static func checkMpns(
    _ body: String, notificationClass: String?
  ) throws(WireFormatError) {
    if let number = notificationClass.flatMap({ Int($0.trimmingBlanks) }),
      rawClasses.contains(where: { $0.contains(number) })
    {
      return
    }
    guard let root = XMLNode.parse(body.utf8), root.name == "Notification",
      root.ownNamespace == "WPNotification",
      let first = root.children.first?.name, first == "Toast" || first == "Tile"
    else {
      throw WireFormatError(
        "'BodyTemplate' must be a Notification of the namespace WPNotification with a Toast or Tile."
      )
    }
  }
}
