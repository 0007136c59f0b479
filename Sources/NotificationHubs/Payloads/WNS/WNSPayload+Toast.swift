public import Foundation

extension WNSPayload {
  /// A picture in the app's package (`ms-appx:`), in its data (`ms-appdata:`) or on the web.
  public struct Image: Hashable, Sendable {
    /// The URL of the picture.
    public var source: URL
    /// The description for screen readers.
    public var alternative: String?

    /// Creates a picture.
    public init(_ source: URL, alternative: String? = nil) {
      self.source = source
      self.alternative = alternative
    }

    static let schemes: Set<String> = ["http", "https", "ms-appx", "ms-appdata", "file"]

    func element(placement: String? = nil, crop: String? = nil) throws(PayloadError) -> WNSElement {
      guard let scheme = source.scheme?.lowercased(), Self.schemes.contains(scheme) else {
        throw PayloadError(
          .malformed, "image.src", "must be an http, https, ms-appx, ms-appdata or file address")
      }
      return WNSElement(
        "image",
        [
          ("placement", placement), ("hint-crop", crop), ("src", source.absoluteString),
          ("alt", alternative),
        ])
    }
  }

  /// A toast, which pops up and stays in the notification center.
  ///
  /// - SeeAlso: <https://learn.microsoft.com/uwp/schemas/tiles/toastschema/schema-root>
  public struct Toast: Hashable, Sendable {
    /// The purpose of the toast. With any scenario, it stays on screen until the user reacts.
    public enum Scenario: String, CaseIterable, Hashable, Sendable {
      /// A reminder, an alarm, an incoming call, or an important notification.
      case reminder, alarm, incomingCall, urgent
    }

    /// The sound of a toast.
    public enum Audio: Hashable, Sendable {
      /// No sound.
      case silent
      /// A system sound, such as `ms-winsoundevent:Notification.Mail`, or one of the app's own.
      case sound(String, loops: Bool = false)
    }

    /// The handler of the user's choice.
    public enum Activation: String, CaseIterable, Hashable, Sendable {
      /// The app is brought to the foreground.
      case foreground
      /// The app's background task is started.
      case background
      /// The arguments are a URL to open.
      case `protocol`
    }

    /// A button of a toast.
    public struct Button: Hashable, Sendable {
      /// The label.
      public var title: String
      /// The text passed to the app.
      public var arguments: String
      /// The handler of the button.
      public var activation: Activation
      /// The URL of an icon.
      public var icon: URL?
      /// The id of the input that the button is placed beside.
      public var inputID: String?

      /// Creates a button.
      public init(
        _ title: String, arguments: String, activation: Activation = .foreground,
        icon: URL? = nil, inputID: String? = nil
      ) {
        self.title = title
        self.arguments = arguments
        self.activation = activation
        self.icon = icon
        self.inputID = inputID
      }
    }

    /// An input of a toast.
    public struct Input: Hashable, Sendable {
      /// The kind of input.
      public enum Kind: Hashable, Sendable {
        /// A text field, with a text to show while it is empty.
        case text(placeholder: String? = nil)
        /// A list of 1 to 5 choices.
        case selection([Choice])
      }

      /// A choice in a list.
      public struct Choice: Hashable, Sendable {
        /// The value passed to the app.
        public var id: String
        /// The label.
        public var title: String
        /// Creates a choice.
        public init(id: String, title: String) {
          self.id = id
          self.title = title
        }
      }

      /// The name under which the app receives the value.
      public var id: String
      /// The kind of input.
      public var kind: Kind
      /// The label.
      public var title: String?

      /// Creates an input.
      public init(id: String, kind: Kind, title: String? = nil) {
        self.id = id
        self.kind = kind
        self.title = title
      }
    }

    /// The lines of text, 1 to 3; the first is the title.
    public var lines: [String]
    /// The source of the content, in small print.
    public var attribution: String?
    /// The text passed to the app when the toast itself is tapped.
    public var launch: String?
    /// The handler of a tap on the toast.
    public var activation: Activation
    /// The picture at the left, in place of the app's logo.
    public var logo: Image?
    /// The picture across the top.
    public var hero: Image?
    /// The pictures below the text.
    public var images: [Image]
    /// Whether the toast stays for 25 s instead of 7.
    public var isLong: Bool
    /// The purpose; `nil` for a plain notification.
    public var scenario: Scenario?
    /// The sound; `nil` for the default.
    public var audio: Audio?
    /// The inputs, at most 5.
    public var inputs: [Input]
    /// The buttons, at most 5.
    public var buttons: [Button]

    /// Creates a toast.
    public init(
      lines: [String], attribution: String? = nil, launch: String? = nil,
      activation: Activation = .foreground, logo: Image? = nil, hero: Image? = nil,
      images: [Image] = [], isLong: Bool = false, scenario: Scenario? = nil,
      audio: Audio? = nil, inputs: [Input] = [], buttons: [Button] = []
    ) {
      self.lines = lines
      self.attribution = attribution
      self.launch = launch
      self.activation = activation
      self.logo = logo
      self.hero = hero
      self.images = images
      self.isLong = isLong
      self.scenario = scenario
      self.audio = audio
      self.inputs = inputs
      self.buttons = buttons
    }

    func element() throws(PayloadError) -> WNSElement {
      let type = activation == .foreground ? nil : activation.rawValue
      var toast = WNSElement(
        "toast",
        [
          ("launch", launch), ("activationType", type), ("duration", isLong ? "long" : nil),
          ("scenario", scenario?.rawValue),
        ])
      toast.append(WNSElement("visual").appending([try binding()]))
      if let actions = try actions() { toast.append(actions) }
      switch audio {
      case nil: break
      case .silent: toast.append(WNSElement("audio", [("silent", "true")]))
      case .sound(let source, let loops):
        try PayloadError.check(source, "audio.src")
        guard !loops || isLong else {
          throw PayloadError(.conflicting, "audio.loop", "needs a toast that is long")
        }
        toast.append(WNSElement("audio", [("src", source), ("loop", loops ? "true" : nil)]))
      }
      return toast
    }

    private func binding() throws(PayloadError) -> WNSElement {
      guard (1...3).contains(lines.count) else {
        throw PayloadError(.outOfRange, "text", "takes 1 to 3 lines, not \(lines.count)")
      }
      var binding = WNSElement("binding", [("template", "ToastGeneric")])
      for line in lines { binding.append(WNSElement("text", text: line)) }
      if let attribution {
        binding.append(WNSElement("text", [("placement", "attribution")], text: attribution))
      }
      if let logo { binding.append(try logo.element(placement: "appLogoOverride")) }
      if let hero { binding.append(try hero.element(placement: "hero")) }
      for image in images { binding.append(try image.element()) }
      return binding
    }

    private func actions() throws(PayloadError) -> WNSElement? {
      guard !inputs.isEmpty || !buttons.isEmpty else { return nil }
      guard inputs.count <= 5, buttons.count <= 5 else {
        throw PayloadError(.outOfRange, "actions", "takes at most 5 inputs and 5 buttons")
      }
      let ids = Set(inputs.map(\.id))
      guard ids.count == inputs.count, !ids.contains("") else {
        throw PayloadError(.malformed, "input.id", "must be there and differ between inputs")
      }
      var actions = WNSElement("actions")
      for input in inputs { actions.append(try input.element()) }
      for button in buttons {
        try PayloadError.check(button.title, "action.content")
        if let id = button.inputID, !ids.contains(id) {
          throw PayloadError(.missing, "action.hint-inputId", "names an input that is not there")
        }
        let type = button.activation == .foreground ? nil : button.activation.rawValue
        actions.append(
          WNSElement(
            "action",
            [
              ("content", button.title), ("arguments", button.arguments), ("activationType", type),
              ("imageUri", button.icon?.absoluteString), ("hint-inputId", button.inputID),
            ]))
      }
      return actions
    }
  }
}

extension WNSPayload.Toast.Input {
  fileprivate func element() throws(PayloadError) -> WNSElement {
    switch kind {
    case .text(let placeholder):
      return WNSElement(
        "input",
        [("id", id), ("type", "text"), ("title", title), ("placeHolderContent", placeholder)])
    case .selection(let choices):
      guard (1...5).contains(choices.count) else {
        throw PayloadError(.outOfRange, "selection", "takes 1 to 5 choices, not \(choices.count)")
      }
      let items = choices.map { WNSElement("selection", [("id", $0.id), ("content", $0.title)]) }
      return WNSElement("input", [("id", id), ("type", "selection"), ("title", title)])
        .appending(items)
    }
  }
}
