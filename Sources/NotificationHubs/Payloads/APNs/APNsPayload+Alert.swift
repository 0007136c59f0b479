extension APNsPayload {
  /// The text of an alert.
  ///
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/usernotifications/generating-a-remote-notification>
  public struct Alert: Hashable, Sendable {
    /// A plain text, or a localized text of the app with arguments.
    public enum Text: Hashable, Sendable, ExpressibleByStringInterpolation {
      /// A plain text.
      case plain(String)
      /// A key in the app's `Localizable.strings`, and the arguments for its `%@`.
      case localized(key: String, arguments: [String] = [])

      /// Creates a plain text from a literal.
      public init(stringLiteral value: String) { self = .plain(value) }
      /// Creates a plain text.
      public init(_ text: String) { self = .plain(text) }
    }

    /// The title.
    public var title: Text?
    /// The subtitle.
    public var subtitle: Text?
    /// The body.
    public var body: Text?
    /// The launch screen or storyboard shown when the user opens the app from the alert.
    public var launchImage: String?

    /// Creates an alert.
    public init(
      title: Text? = nil, subtitle: Text? = nil, body: Text? = nil, launchImage: String? = nil
    ) {
      self.title = title
      self.subtitle = subtitle
      self.body = body
      self.launchImage = launchImage
    }

    /// Creates an alert from texts computed at run time.
    @_disfavoredOverload  // Literals, and a mere `nil`, are `Text`.
    public init(
      title: String? = nil, subtitle: String? = nil, body: String? = nil,
      launchImage: String? = nil
    ) {
      self.title = title.map { .plain($0) }
      self.subtitle = subtitle.map { .plain($0) }
      self.body = body.map { .plain($0) }
      self.launchImage = launchImage
    }

    func value(as member: String) throws(PayloadError) -> PayloadValue {
      var members: [String: PayloadValue] = [:]
      // On the wire the body's keys have no prefix, because they are older than the others.
      for (text, name, prefix) in [
        (title, "title", "title-"), (subtitle, "subtitle", "subtitle-"), (body, "body", ""),
      ] {
        switch text {
        case nil: break
        case .plain(let text)?: members[name] = .string(text)
        case .localized(let key, let arguments)?:
          try PayloadError.check(key, "\(member).\(prefix)loc-key")
          members["\(prefix)loc-key"] = .string(key)
          if !arguments.isEmpty {
            members["\(prefix)loc-args"] = .array(arguments.map { .string($0) })
          }
        }
      }
      guard !members.isEmpty else {
        throw PayloadError(.missing, member, "needs a title, a subtitle or a body")
      }
      try PayloadError.check(launchImage, "\(member).launch-image")
      members["launch-image"] = launchImage.map { .string($0) }
      return .object(members)
    }
  }

  /// The sound of a notification.
  public enum Sound: Hashable, Sendable {
    /// The system's default sound.
    case standard
    /// A file in the app's bundle or its `Library/Sounds`.
    case named(String)
    /// A critical sound, which plays even if the device is muted; the app needs an entitlement from
    /// Apple. `name` is `nil` for the default sound; `volume` is 0 to 1.
    case critical(name: String? = nil, volume: Double = 1)

    func value(as member: String) throws(PayloadError) -> PayloadValue {
      switch self {
      case .standard: return "default"
      case .named(let name):
        try PayloadError.check(name, member)
        return .string(name)
      case .critical(let name, let volume):
        try PayloadError.check(name, "\(member).name")
        try PayloadError.check(volume, in: 0...1, "\(member).volume")
        return ["critical": 1, "name": .string(name ?? "default"), "volume": .double(volume)]
      }
    }
  }

  /// The degree to which a notification may interrupt the user.
  ///
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/usernotifications/unnotificationinterruptionlevel>
  public enum InterruptionLevel: String, CaseIterable, Hashable, Sendable {
    /// Added to the list without lighting up the screen or playing a sound.
    case passive
    /// Presented immediately.
    case active
    /// Breaks through Focus and summaries; the app needs a capability for it.
    case timeSensitive = "time-sensitive"
    /// Breaks through everything; the app needs an entitlement from Apple.
    case critical
  }

  /// The content of an alert push: the members of `aps`.
  public struct Content: Hashable, Sendable {
    /// The text to show.
    public var alert: Alert?
    /// The number at the app's icon; 0 removes it.
    public var badge: Int?
    /// The sound to play; `nil` for none.
    public var sound: Sound?
    /// The interruption level; `nil` for the system's default.
    public var interruptionLevel: InterruptionLevel?
    /// The rank among the app's notifications in a summary, 0 to 1.
    public var relevanceScore: Double?
    /// Whether the app's notification service extension may modify it first; requires an ``alert``.
    public var isMutable = false
    /// Whether the app is also woken in the background.
    public var isContentAvailable = false
    /// An id by which notifications are grouped.
    public var threadID: String?
    /// The category, which selects the buttons that the app has registered.
    public var category: String?
    /// The id of the window or scene to bring forward.
    public var targetContentID: String?
    /// The criteria by which a Focus filters the notification.
    public var filterCriteria: String?

    /// Creates the content of an alert push.
    public init(
      alert: Alert? = nil, badge: Int? = nil, sound: Sound? = nil,
      interruptionLevel: InterruptionLevel? = nil, relevanceScore: Double? = nil,
      isMutable: Bool = false, isContentAvailable: Bool = false, threadID: String? = nil,
      category: String? = nil, targetContentID: String? = nil, filterCriteria: String? = nil
    ) {
      self.alert = alert
      self.badge = badge
      self.sound = sound
      self.interruptionLevel = interruptionLevel
      self.relevanceScore = relevanceScore
      self.isMutable = isMutable
      self.isContentAvailable = isContentAvailable
      self.threadID = threadID
      self.category = category
      self.targetContentID = targetContentID
      self.filterCriteria = filterCriteria
    }

    func members() throws(PayloadError) -> [String: PayloadValue] {
      guard alert != nil || badge != nil || sound != nil else {
        throw PayloadError(
          .missing, "aps", "needs an alert, a badge or a sound; a silent push is '.background'")
      }
      if isMutable, alert == nil {
        throw PayloadError(
          .missing, "aps.alert", "is needed with mutable content: nothing else is given to change")
      }
      try PayloadError.check(badge, in: 0...Int(Int32.max), "aps.badge")
      try PayloadError.check(relevanceScore, in: 0...1, "aps.relevance-score")
      let texts = [
        ("thread-id", threadID), ("category", category),
        ("target-content-id", targetContentID), ("filter-criteria", filterCriteria),
      ]
      var aps: [String: PayloadValue] = [:]
      for (name, text) in texts {
        try PayloadError.check(text, "aps.\(name)")
        aps[name] = text.map { .string($0) }
      }
      if let alert { aps["alert"] = try alert.value(as: "aps.alert") }
      aps["badge"] = badge.map { .int(Int64($0)) }
      if let sound { aps["sound"] = try sound.value(as: "aps.sound") }
      aps["interruption-level"] = interruptionLevel.map { .string($0.rawValue) }
      aps["relevance-score"] = relevanceScore.map { .double($0) }
      if isMutable { aps["mutable-content"] = 1 }
      if isContentAvailable { aps["content-available"] = 1 }
      return aps
    }
  }
}
