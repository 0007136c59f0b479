extension WNSPayload {
  /// New content for the tile, for each size that is given.
  ///
  /// - SeeAlso: <https://learn.microsoft.com/uwp/schemas/tiles/tilesschema/schema-root>
  public struct Tile: Hashable, Sendable {
    /// The branding at the tile's lower edge.
    public enum Branding: String, CaseIterable, Hashable, Sendable {
      /// Nothing, the app's name, its logo, or both.
      case none, name, logo, nameAndLogo
    }

    /// The content for one tile size.
    public struct Face: Hashable, Sendable {
      /// The lines of text.
      public var lines: [String]
      /// The pictures.
      public var images: [Image]
      /// The picture behind the text.
      public var background: Image?

      /// Creates the content for one size.
      public init(lines: [String] = [], images: [Image] = [], background: Image? = nil) {
        self.lines = lines
        self.images = images
        self.background = background
      }
    }

    /// The content of the small tile.
    public var small: Face?
    /// The content of the medium tile.
    public var medium: Face?
    /// The content of the wide tile.
    public var wide: Face?
    /// The content of the large tile.
    public var large: Face?
    /// The branding at the lower edge; `nil` leaves it to Windows.
    public var branding: Branding?
    /// The name shown instead of the app's name.
    public var displayName: String?

    /// Creates tile content.
    public init(
      small: Face? = nil, medium: Face? = nil, wide: Face? = nil, large: Face? = nil,
      branding: Branding? = nil, displayName: String? = nil
    ) {
      self.small = small
      self.medium = medium
      self.wide = wide
      self.large = large
      self.branding = branding
      self.displayName = displayName
    }

    func element() throws(PayloadError) -> WNSElement {
      let faces = [
        ("TileSmall", small), ("TileMedium", medium), ("TileWide", wide), ("TileLarge", large),
      ]
      var visual = WNSElement(
        "visual", [("branding", branding?.rawValue), ("displayName", displayName)])
      var isEmpty = true
      for case (let name, let face?) in faces {
        guard !face.lines.isEmpty || !face.images.isEmpty || face.background != nil else {
          throw PayloadError(.missing, name, "has neither text nor image")
        }
        isEmpty = false
        var binding = WNSElement("binding", [("template", name)])
        if let background = face.background {
          binding.append(try background.element(placement: "background"))
        }
        for line in face.lines {
          binding.append(WNSElement("text", [("hint-wrap", "true")], text: line))
        }
        for image in face.images { binding.append(try image.element()) }
        visual.append(binding)
      }
      guard !isEmpty else { throw PayloadError(.missing, "visual", "needs a size") }
      return WNSElement("tile").appending([visual])
    }
  }

  /// The badge in the corner of the app's tile or taskbar button.
  ///
  /// - SeeAlso: <https://learn.microsoft.com/uwp/schemas/tiles/badgeschema/schema-root>
  public enum Badge: Hashable, Sendable {
    /// A number. 0 removes the badge; above 99 Windows shows `99+`.
    case number(Int)
    /// A symbol.
    case glyph(Glyph)

    /// The symbols that Windows offers.
    public enum Glyph: String, CaseIterable, Hashable, Sendable {
      /// The symbols; `none` removes the badge.
      case none, activity, alarm, alert, attention, available, away, busy, error, newMessage
      case paused, playing, unavailable
    }

    func element() throws(PayloadError) -> WNSElement {
      switch self {
      case .number(let number):
        try PayloadError.check(number, in: 0...Int(Int32.max), "badge.value")
        return WNSElement("badge", [("value", String(number))])
      case .glyph(let glyph): return WNSElement("badge", [("value", glyph.rawValue)])
      }
    }
  }
}
