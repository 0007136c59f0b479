extension PushID {
  /// The canonical lower-case UUID form: 8-4-4-4-12 digits.
  var uuidText: String {
    func digits(_ number: UInt64) -> String {
      let text = String(number, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }
    let (high, low) = (digits(high), digits(low))
    return [
      high.prefix(8), high.dropFirst(8).prefix(4), high.suffix(4), low.prefix(4),
      low.suffix(12),
    ].joined(separator: "-")
  }
}
