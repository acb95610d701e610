"""Planning: from shapes, strides and dtypes to frozen, printable plans. Pure Python; nothing here knows a device."""
